// SPDX-License-Identifier: Apache-2.0
// Policies replayed over a log, as sentences and a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/replay/policy_study.hpp"
#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

/// For example "runs/a: 901 steps, 0 to 900, 901 with histograms".
std::string policies_heading(const analyzers::replay::PolicyStudy& study);

/// Returns a table of the run itself and the recommended settings, then of the policies, least lost
/// first. Policies with equal results have one row. The sentences explain how to read the table.
Section policies_section(const analyzers::replay::PolicyStudy& study);

/// For example "12 policies over 901 steps; the run itself skipped 3".
std::string policies_digest(const analyzers::Study& study);

/// A fault of some policies on this log. `concerns`: true for the run itself and the tuned policy,
/// and for all policies if the user selected them by name (`asked` below).
struct PitfallWords {
  std::vector<std::string> names;  ///< the policies; "the run itself" for the recorded one
  std::string text;
  bool concerns = false;
};
std::vector<PitfallWords> pitfalls(const analyzers::replay::PolicyStudy& study, bool asked);
/// Returns the names of the policies without `concerns`. Empty if there are none.
std::string other_pitfalls_text(const std::vector<PitfallWords>& pitfalls);

/// Returns "torch", or with settings that are not the defaults "torch,growth_interval=4".
std::string trace_name(const analyzers::replay::Trace& trace);

/// Returns Trace::lost() as "1.2 to 3 %". Returns "at least 1.2 %" if the flushed share is
/// unknown for this trace although other traces have one.
std::string lost_text(const analyzers::replay::Trace& trace,
                      const analyzers::replay::StepSeries& series);
/// Returns "1,234". Steps may be negative.
std::string step_text(std::int64_t step);
/// Returns "3", or "3 to 5" if some steps are unknown.
std::string skips_text(const analyzers::replay::Trace& trace);
/// Returns skips_text(), and " + 44 spoiled" if infinity or NaN was added to the weights.
std::string skipped_text(const analyzers::replay::Trace& trace);
/// Returns "2^10 to 2^16", or one scale if it never changes.
std::string scales_text(const analyzers::replay::Trace& trace);
/// Returns "2^16", "0: collapsed", "infinite: stuck", "ends at step 12", ...
std::string end_text(const analyzers::replay::Trace& trace,
                     const analyzers::replay::StepSeries& series);

/// Returns why steps were lost, for example "overflow by the scale"; empty if none was lost.
std::string why_text(const analyzers::replay::Trace& trace);

/// Returns true if a loss scale may help the run. Otherwise no settings are recommended.
bool gives_settings(const analyzers::replay::PolicyStudy& study);

/// Returns what the run did and whether the replay of its own policy equals it, the recommended
/// static scale, and the best dynamic settings with lines to paste, or why none were searched.
/// `asked`: the value of --framework, empty without it.
Section replay_answer(const analyzers::replay::PolicyStudy& study, std::string_view asked = "");
/// Returns the recommended static scale and its result in the replay, or why there is none. Empty
/// if no replay has one.
std::string fixed_text(const analyzers::replay::PolicyStudy& study);
/// Returns why there are no dynamic settings; empty if the log has no steps to search over.
std::string not_tuned_text(const analyzers::replay::PolicyStudy& study, std::string_view asked);
/// Returns the traces that policies are compared with, and their names: the run itself, the
/// recommended static scale, and the best dynamic settings. A trace that does not exist is omitted.
std::vector<std::pair<std::string, const analyzers::replay::Trace*>> references(
    const analyzers::replay::PolicyStudy& study);

}  // namespace halfscope::reports::answer
