// SPDX-License-Identifier: Apache-2.0
// What a replay says, in words: for the terminal and the page.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "analyzers/policy_study.hpp"

namespace halfscope::reports {

/// "torch", with the settings that differ from the framework's: "torch,growth_interval=4".
std::string trace_name(const analyzers::Trace& trace);

/// Trace::lost_share() as text.
std::string lost_text(const analyzers::Trace& trace);
/// "3 (0.3 %)"; with unknown steps "3 to 5": those may have been clean.
std::string skipped_text(const analyzers::Trace& trace);
/// Mean share flushed over the steps with tables, the worst in brackets; "-" where there are none.
std::string flushed_text(const analyzers::Trace& trace);
/// "2^10 to 2^16", or one scale.
std::string scales_text(const analyzers::Trace& trace);
/// "2^16", "0: all lost", "infinite: stuck", "error at step 12", ...
std::string end_text(const analyzers::Trace& trace, const analyzers::StepSeries& series);

/// Why steps were lost: "overflow by the scale", or NaN in the model, which no scale cures; empty
/// where none was.
std::string why_text(const analyzers::Trace& trace);

/// The answer in one or two sentences, each on a line.
std::string best_text(const analyzers::PolicyStudy& study);
/// Whether the replay of the run's own policy equals the run; empty where it has none.
std::string check_text(const analyzers::PolicyStudy& study);
std::string tuned_text(const analyzers::TunedPolicy& tuned, double target_underflow);
/// Traps with the names of the policies they apply to; equal texts once.
std::vector<std::pair<std::string, std::string>> traps_text(const analyzers::PolicyStudy& study);

}  // namespace halfscope::reports
