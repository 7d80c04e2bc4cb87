// SPDX-License-Identifier: Apache-2.0
// What an answer begins with, of any log: NaN and infinities that last, steps skipped in vain.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::answer {

/// adam_alarms(), alarm_words(), and the same of run logs' scalars and of tensors that end in NaN
/// or infinities.
std::vector<AlarmWords> first_words(const analyzers::Findings& found);

/// The same and collapse_words(), a line each. Plain text.
std::string first_text(const analyzers::Findings& found);

/// Whether something is infinite or NaN, or overflows, whatever the loss scale.
bool broken(const analyzers::Study& study);

}  // namespace halfscope::reports::answer
