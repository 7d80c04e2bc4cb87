// SPDX-License-Identifier: Apache-2.0
// What became of the loss scale of a run whose log is another tool's, in words.
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

/// A section a log that has more to tell than its state_words().
std::vector<Section> timeline_sections(const analyzers::Findings& found);

/// That a loss scale collapsed, what drove it, and what to do: a sentence or two each, or nothing
/// where alarms say it.
struct CollapseWords {
  std::string what, driver, action;
  bool broken = false;  ///< NaN or infinities last to the end of the log, and alarms say so
  /// What follows `what`.
  std::string rest() const;
};
std::optional<CollapseWords> collapse_words(const analyzers::scale_history::TimelineFacts& facts);
/// Those of each log that has them; the log is named where there are several.
std::vector<CollapseWords> collapse_words(const analyzers::Findings& found);

/// What is wrong, by the scalars and skipped steps of a log, and what to do about it.
struct AlarmWords {
  std::string what, action;
  bool lasts = false;  ///< to the end of the log
  bool minor = false;  ///< costs few steps, or none
};
/// In timeline_alarm.cpp.
std::vector<AlarmWords> alarm_words(const analyzers::scale_history::TimelineFacts& facts,
                                    analyzers::frames::Tool tool = analyzers::frames::Tool::other);
/// How a run did of which no alarm tells, as far as a log without tensors shows; empty of one that
/// collapsed. In state_words.cpp.
AlarmWords state_words(const analyzers::scale_history::TimelineFacts& facts);
/// That the scale began anew, as where the scaler was not restored; empty where it did not. There.
AlarmWords jump_words(const analyzers::scale_history::TimelineFacts& facts,
                      analyzers::frames::Tool tool);
/// That the learning rate's schedule ran ahead of skipped steps, where it did. There.
AlarmWords schedule_words(const analyzers::scale_history::TimelineFacts& facts,
                          analyzers::frames::Tool tool);
/// The alarms of every log, or its state where that is all that can be said of it; the log is named
/// where there are several.
std::vector<AlarmWords> alarm_words(const analyzers::Findings& found);

/// "2 to 40 of the steps 1 to 4000 (0.05 % to 1.0 %) were skipped, if ...", where the scale alone
/// tells of skipped steps, and how many the log has.
std::string halvings_text(const analyzers::scale_history::TimelineFacts& facts);
/// "49 of the steps 1 to 100 (49 %) were skipped", as far as the log says of how many.
std::string share_of_steps(const analyzers::scale_history::TimelineFacts& facts);

/// "65536 (2^16)"; "0" and what is not finite as they are.
std::string scale_name(double scale);

}  // namespace halfscope::reports::answer
