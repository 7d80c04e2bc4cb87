// SPDX-License-Identifier: Apache-2.0
// What is said of Adam's state in 16 bits.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::answer {

/// "FP16, in which its state is held"
std::string held_text(const analyzers::updates::AdamState& state);
/// "3 of 40 recorded second moments"
std::string lost_moments_text(const analyzers::updates::AdamState& state);
std::string adam_cure_text(const analyzers::updates::AdamState& state);

/// Of states that divide by zero.
std::vector<AlarmWords> adam_alarms(const analyzers::Findings& found);

}  // namespace halfscope::reports::answer
