// SPDX-License-Identifier: Apache-2.0
// `halfscope compare --sums`: whether sums differ by the order of additions or by a bug.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/compare/compare.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns "within", "above" or "cannot tell".
std::string_view name_of(analyzers::reduction::Verdict verdict);

/// Parses "length=4096,format=fp16,magnitudes=weight_grad/magnitudes"; the tensor's name may
/// contain commas. Throws std::invalid_argument with the text found and the form expected.
analyzers::compare::OrderAsked order_called(const std::string& text);

/// Returns one sentence on all tensors.
std::string order_verdict(const analyzers::compare::Comparison& comparison);

/// Empty if --sums was not used.
Section order_section(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::answer
