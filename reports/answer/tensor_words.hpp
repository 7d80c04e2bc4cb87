// SPDX-License-Identifier: Apache-2.0
// What is said of the tensors of a log, together and one by one.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Why a tensor's zeros, or what becomes zero, are not known: a sentence; empty where they are.
std::string zeros_doubt(const analyzers::underflow::TensorFindings& tensor);

/// What a tensor is, and what of it is not known exactly, in sentences.
std::string facts_text(const analyzers::underflow::TensorFindings& tensor);

/// What becomes of the values of a log at its loss scale: of the gradients where there are any,
/// else of all; NaN, infinities and overflow first.
std::vector<std::string> tensors_sentences(const analyzers::Findings& found);
/// The same of each tensor, worst first. Tensors that no loss scale acts on are left out where the
/// loss scale is not 1 and there are gradients.
Table tensors_table(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
