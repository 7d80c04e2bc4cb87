// SPDX-License-Identifier: Apache-2.0
// The result of a condition of --fail-if as a line of text.
#pragma once

#include <string>

#include "analyzers/gates/condition.hpp"

namespace halfscope::reports::answer {

/// Returns "flushed_to_zero 12 of 72 (16.7 %) > 0.1 %", and adds that the condition is undecided if
/// only bounds are known. Returns "loss is NaN" for a number that is NaN.
std::string violation_text(const analyzers::gates::Condition& condition,
                           const analyzers::gates::Measured& value,
                           analyzers::gates::Verdict verdict);

}  // namespace halfscope::reports::answer
