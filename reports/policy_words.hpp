// SPDX-License-Identifier: Apache-2.0
// What a replay says, in words: for the terminal and the page.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/policy_study.hpp"

namespace halfscope::reports {

/// "torch", with the settings that differ from the framework's: "torch,growth_interval=4".
std::string trace_name(const analyzers::Trace& trace);

/// Trace::lost_share() as text.
std::string lost_text(const analyzers::Trace& trace);
/// "3"; with unknown steps "3 to 5": nobody knows of those. "0 + 44 spoiled": infinity or NaN went
/// into the weights.
std::string skipped_text(const analyzers::Trace& trace);
/// A share, or bounds of it; "-" where no step has tables.
std::string flushed_text(const std::optional<std::pair<double, double>>& share);
/// "2^10 to 2^16", or one scale.
std::string scales_text(const analyzers::Trace& trace);
/// "2^16", "0: all lost", "infinite: stuck", "error at step 12", ...
std::string end_text(const analyzers::Trace& trace, const analyzers::StepSeries& series);

/// Why steps were lost: "overflow by the scale", or NaN in the model, which no scale cures; empty
/// where none was.
std::string why_text(const analyzers::Trace& trace);

/// What the run did, and whether the replay of its own policy equals it; empty where its scale is
/// not recorded. These and the next end in a line break.
std::string run_text(const analyzers::PolicyStudy& study);
std::string check_text(const analyzers::PolicyStudy& study);
/// The line to paste for the best dynamic settings, and what they would have done.
std::string tuned_text(const analyzers::TunedPolicy& tuned, double target_underflow);
/// The recommended static scale, and what it would have done; empty where there is none.
std::string fixed_text(const analyzers::PolicyStudy& study);
/// Traps with the names of the policies they apply to; equal texts once.
std::vector<std::pair<std::string, std::string>> traps_text(const analyzers::PolicyStudy& study);

}  // namespace halfscope::reports
