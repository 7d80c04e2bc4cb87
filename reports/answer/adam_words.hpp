// SPDX-License-Identifier: Apache-2.0
// Sentences about Adam's state in 16-bit formats.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::answer {

/// Returns the format of the state, for example "FP16, in which its state is held".
std::string held_text(const analyzers::updates::AdamState& state);
/// Returns the number of lost moments, for example "3 of 40 recorded second moments".
std::string lost_moments_text(const analyzers::updates::AdamState& state);
std::string adam_cure_text(const analyzers::updates::AdamState& state);

/// Returns one alarm for each state with which an update divides by zero.
std::vector<AlarmWords> adam_alarms(const analyzers::Findings& found);

}  // namespace halfscope::reports::answer
