// SPDX-License-Identifier: Apache-2.0
// The first sentences of an answer: lasting NaN or infinities, and steps skipped at any scale.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::answer {

/// Returns adam_alarms() and alarm_words(), then such alarms for the scalars of run logs and for
/// tensors that end in NaN or infinities.
std::vector<AlarmWords> first_words(const analyzers::Findings& found);

/// Returns first_words() and collapse_words(), one line each, without marks.
std::string first_text(const analyzers::Findings& found);

/// Returns true if values are NaN, infinite or overflow, whatever the loss scale.
bool broken(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
