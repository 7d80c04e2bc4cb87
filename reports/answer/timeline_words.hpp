// SPDX-License-Identifier: Apache-2.0
// Words for the loss scale of a run whose log another tool wrote.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns one section for each log with a loss scale or skipped steps.
std::vector<Section> timeline_sections(const analyzers::Findings& found);

/// The collapse of a loss scale, its driver, and what to do, in one or two sentences each. A string
/// is empty if an alarm says the same.
struct CollapseWords {
  std::string what, driver, action;
  bool broken = false;  ///< NaN or infinities last to the end of the log; an alarm says so
  /// Returns `driver` and `action`.
  std::string rest() const;
};
std::optional<CollapseWords> collapse_words(const analyzers::scale_history::TimelineFacts& facts);
/// Returns the collapses of all logs. If there are several logs, `what` begins with the log's name.
std::vector<CollapseWords> collapse_words(const analyzers::Findings& found);

/// A problem in the scalars and skipped steps of a log, and what to do.
struct AlarmWords {
  std::string what, action;
  bool lasts = false;  ///< true if it lasts to the end of the log
  bool minor = false;  ///< true if it costs few steps or none
};
/// Returns the alarms of one log. Defined in timeline_alarm.cpp.
std::vector<AlarmWords> alarm_words(const analyzers::scale_history::TimelineFacts& facts,
                                    analyzers::frames::Tool tool = analyzers::frames::Tool::other);
/// Returns the state of a loss scale without alarms. Defined in state_words.cpp.
AlarmWords state_words(const analyzers::scale_history::TimelineFacts& facts);
/// Returns that the scale began again; empty if it did not. Defined in state_words.cpp.
AlarmWords jump_words(const analyzers::scale_history::TimelineFacts& facts,
                      analyzers::frames::Tool tool);
/// Returns that the learning-rate schedule advanced at skipped steps. Defined in state_words.cpp.
AlarmWords schedule_words(const analyzers::scale_history::TimelineFacts& facts,
                          analyzers::frames::Tool tool);
/// Returns the alarms of all logs. A log without tensors and alarms has its state_words() instead.
/// If there are several logs, `what` begins with the log's name.
std::vector<AlarmWords> alarm_words(const analyzers::Findings& found);

/// Returns "2 to 40 of the steps 1 to 4000 (0.05 % to 1.0 %) were skipped, if ...", for a log in
/// which only falls of the scale show skipped steps.
std::string halvings_text(const analyzers::scale_history::TimelineFacts& facts);
/// Returns "49 of the steps 1 to 100 (49 %) were skipped"; without a total if it is unknown.
std::string share_of_steps(const analyzers::scale_history::TimelineFacts& facts);

/// Returns "65536 (2^16)", or the number itself if it is 0, negative or not finite.
std::string scale_name(double scale);

}  // namespace halfscope::reports::answer
