// SPDX-License-Identifier: Apache-2.0
// What a condition of --fail-if found, as a line for people.
#pragma once

#include <string>

#include "analyzers/gates/condition.hpp"

namespace halfscope::reports::answer {

/// "flushed_to_zero 12 of 72 (16.7 %) > 0.1 %"; says so where only bounds are known. Of a number
/// that is NaN: "loss is NaN".
std::string violation_text(const analyzers::gates::Condition& condition,
                           const analyzers::gates::Measured& value,
                           analyzers::gates::Verdict verdict);

}  // namespace halfscope::reports::answer
