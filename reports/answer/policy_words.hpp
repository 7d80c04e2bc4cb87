// SPDX-License-Identifier: Apache-2.0
// The results of a replay in words, for the terminal and the page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/replay/policy_study.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

/// Returns "torch", or with settings that are not the defaults "torch,growth_interval=4".
std::string trace_name(const analyzers::replay::Trace& trace);

/// The function that formats a range of shares: share_range_text or narrow_range_text.
using RangeText = std::string (*)(double low, double high);

/// Returns Trace::lost() as "1.2 % to 3 %". Returns "at least 1.2 %" if the flushed share is
/// unknown for this trace although other traces have one.
std::string lost_text(const analyzers::replay::Trace& trace,
                      const analyzers::replay::StepSeries& series,
                      RangeText range = share_range_text);
/// Returns "1,234". Steps may be negative.
std::string step_text(std::int64_t step);
/// Returns "3", or "3 to 5" if some steps are unknown.
std::string skips_text(const analyzers::replay::Trace& trace);
/// Returns skips_text(), and " + 44 spoiled" if infinity or NaN was added to the weights.
std::string skipped_text(const analyzers::replay::Trace& trace);
/// Returns a share or its bounds; "-" if no step has histograms.
std::string flushed_text(const std::optional<std::pair<double, double>>& share,
                         RangeText range = share_range_text);
/// Returns "2^10 to 2^16", or one scale if it never changes.
std::string scales_text(const analyzers::replay::Trace& trace);
/// Returns "2^16", "0: collapsed", "infinite: stuck", "ends at step 12", ...
std::string end_text(const analyzers::replay::Trace& trace,
                     const analyzers::replay::StepSeries& series);

/// Returns why steps were lost, for example "overflow by the scale"; empty if none was lost.
std::string why_text(const analyzers::replay::Trace& trace);

/// Returns true if a loss scale may help the run. Otherwise no settings are recommended.
bool gives_settings(const analyzers::replay::PolicyStudy& study);

/// A line of an answer.
struct AnswerLine {
  enum class Kind : std::uint8_t {
    sentence,
    label,  ///< says where the lines to paste belong; ends with a colon
    paste   ///< shown unchanged, together with its neighbours
  };
  std::string text;
  Kind kind = Kind::sentence;
};
/// Returns what the run did and whether the replay of its own policy equals it, the recommended
/// static scale, and the best dynamic settings with lines to paste, or why none were searched.
/// `asked`: the value of --framework, empty without it.
std::vector<AnswerLine> answer_lines(const analyzers::replay::PolicyStudy& study,
                                     std::string_view asked = "");
/// Returns the recommended static scale and its result in the replay, or why there is none. Empty
/// if no replay has one. This function and the next two end their text with a line break.
std::string fixed_text(const analyzers::replay::PolicyStudy& study);
/// Returns why there are no dynamic settings; empty if the log has no steps to search over.
std::string not_tuned_text(const analyzers::replay::PolicyStudy& study, std::string_view asked);
/// Returns whether a replay of the run's own policy equals the run; empty without a replay.
std::string check_text(const analyzers::replay::PolicyStudy& study);
/// Returns the traces that policies are compared with, and their names: the run itself, the
/// recommended static scale, and the best dynamic settings. A trace that does not exist is omitted.
std::vector<std::pair<std::string, const analyzers::replay::Trace*>> references(
    const analyzers::replay::PolicyStudy& study);
/// Returns a sentence that explains two numbers of skipped steps, as in "3 to 5".
std::string unknown_steps_text();

}  // namespace halfscope::reports::answer
