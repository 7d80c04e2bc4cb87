// SPDX-License-Identifier: Apache-2.0
// Rounding in another order, or a bug: `halfscope compare --sums`.
#pragma once

#include <string>
#include <string_view>

#include "analyzers/compare/compare.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// "within", "above", "cannot tell"
std::string_view name_of(analyzers::reduction::Verdict verdict);

/// "length=4096,format=fp16,magnitudes=weight_grad/magnitudes"; the name may have commas. Throws
/// std::invalid_argument saying what was found and what is wanted.
analyzers::compare::OrderAsked order_called(const std::string& text);

/// One sentence on all tensors.
std::string order_verdict(const analyzers::compare::Comparison& comparison);

/// Empty where it was not asked.
Section order_section(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::answer
