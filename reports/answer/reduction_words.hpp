// SPDX-License-Identifier: Apache-2.0
// Losses of sums in few bits: `halfscope reduce`, and a section of the report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// "bias gradient"
std::string_view sum_name(analyzers::reduction::Sum sum);

/// One sentence a format for the sums over ranks, over microbatches and over elements: what is
/// lost, and whether FP32 is needed. Of several orders the one with the largest error.
std::vector<std::string> reduction_sentences(
    const std::vector<analyzers::reduction::Reduction>& found);

/// One line for a folded section.
std::string_view reductions_digest(const std::vector<analyzers::reduction::Reduction>& found);

/// These sentences, where to set FP32, and the tensors with the largest errors.
Section reduction_section(const std::vector<analyzers::reduction::Reduction>& found);

}  // namespace halfscope::reports::answer
