// SPDX-License-Identifier: Apache-2.0
// Words for the loss scale of a run whose log another tool wrote.
#pragma once

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

/// Returns the collapse of a loss scale, `with_cause`: and its cause. Empty if it did not collapse.
std::optional<Finding> collapse_finding(const analyzers::scale_history::TimelineFacts& facts,
                                        bool with_cause);
/// Returns the alarms in the scalars and skipped steps of one log.
std::vector<Finding> scale_alarms(const analyzers::scale_history::TimelineFacts& facts,
                                  analyzers::frames::Tool tool);
/// Returns that the scale began again; empty if it did not.
std::optional<Finding> jump_finding(const analyzers::scale_history::TimelineFacts& facts,
                                    analyzers::frames::Tool tool);
/// Returns the state of a loss scale without alarms.
Finding state_finding(const analyzers::scale_history::TimelineFacts& facts);

/// Returns "2 to 40 of the steps 1 to 4000 (0.05 % to 1.0 %) were skipped, if ...", for a log in
/// which only falls of the scale show skipped steps.
std::string halvings_text(const analyzers::scale_history::TimelineFacts& facts);
/// Returns "49 of the steps 1 to 100 (49 %) were skipped"; without a total if it is unknown.
std::string share_of_steps(const analyzers::scale_history::TimelineFacts& facts);

/// Returns "65536 (2^16)", or the number itself if it is 0, negative or not finite.
std::string scale_name(double scale);

/// Returns the findings that `analyze` and `policies` show first, on runs that fail and on the loss
/// scale of other tools' logs: a line each, without marks.
std::string first_text(const analyzers::Findings& found);

}  // namespace halfscope::reports::answer
