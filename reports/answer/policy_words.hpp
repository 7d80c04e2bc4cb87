// SPDX-License-Identifier: Apache-2.0
// What a replay says, in words: for the terminal and the page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/replay/policy_study.hpp"

namespace halfscope::reports::answer {

/// "torch", with the settings that differ from the framework's: "torch,growth_interval=4".
std::string trace_name(const analyzers::replay::Trace& trace);

/// Trace::lost() as "1.2 % to 3 %"; "at least 1.2 %" where what is flushed is not known of this
/// trace alone.
std::string lost_text(const analyzers::replay::Trace& trace,
                      const analyzers::replay::StepSeries& series);
/// "1,234"; steps may be negative.
std::string step_text(std::int64_t step);
/// "3"; with unknown steps "3 to 5": nobody knows of those.
std::string skips_text(const analyzers::replay::Trace& trace);
/// The same; "0 + 44 spoiled" where infinity or NaN went into the weights.
std::string skipped_text(const analyzers::replay::Trace& trace);
/// A share, or bounds of it; "-" where no step has tables.
std::string flushed_text(const std::optional<std::pair<double, double>>& share);
/// "2^10 to 2^16", or one scale.
std::string scales_text(const analyzers::replay::Trace& trace);
/// "2^16", "0: collapsed", "infinite: stuck", "ends at step 12", ...
std::string end_text(const analyzers::replay::Trace& trace,
                     const analyzers::replay::StepSeries& series);

/// Why steps were lost: "overflow by the scale", or NaN in the model, which no scale cures; empty
/// where none was.
std::string why_text(const analyzers::replay::Trace& trace);

/// What the run did, and whether the replay of its own policy equals it; empty where its scale is
/// not recorded. These and the next end in a line break.
std::string run_text(const analyzers::replay::PolicyStudy& study);
std::string check_text(const analyzers::replay::PolicyStudy& study);
/// The best dynamic settings, what they would have done, and lines to paste, indented; or why none
/// were searched. `asked`: whose, as --framework has it; may be empty.
std::string tuned_text(const analyzers::replay::PolicyStudy& study, std::string_view asked = "");
/// The recommended static scale, and what it would have done; empty where there is none.
std::string fixed_text(const analyzers::replay::PolicyStudy& study);
/// What the policies are held against, with names: the run itself, the recommended static scale,
/// and the best dynamic settings.
std::vector<std::pair<std::string, const analyzers::replay::Trace*>> references(
    const analyzers::replay::PolicyStudy& study);
/// What "3 to 5" steps skipped means; a sentence.
std::string unknown_steps_text();
/// Traps with the names of the policies they apply to; equal texts once.
std::vector<std::pair<std::string, std::string>> traps_text(
    const analyzers::replay::PolicyStudy& study);

}  // namespace halfscope::reports::answer
