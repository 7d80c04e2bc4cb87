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
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

/// "torch", with the settings that differ from the framework's: "torch,growth_interval=4".
std::string trace_name(const analyzers::replay::Trace& trace);

/// How a range of shares is written: share_range_text or narrow_range_text.
using RangeText = std::string (*)(double low, double high);

/// Trace::lost() as "1.2 % to 3 %"; "at least 1.2 %" where what is flushed is not known of this
/// trace alone.
std::string lost_text(const analyzers::replay::Trace& trace,
                      const analyzers::replay::StepSeries& series,
                      RangeText range = share_range_text);
/// "1,234"; steps may be negative.
std::string step_text(std::int64_t step);
/// "3"; with unknown steps "3 to 5".
std::string skips_text(const analyzers::replay::Trace& trace);
/// The same; "0 + 44 spoiled" where infinity or NaN went into the weights.
std::string skipped_text(const analyzers::replay::Trace& trace);
/// A share, or bounds of it; "-" where no step has tables.
std::string flushed_text(const std::optional<std::pair<double, double>>& share,
                         RangeText range = share_range_text);
/// "2^10 to 2^16", or one scale.
std::string scales_text(const analyzers::replay::Trace& trace);
/// "2^16", "0: collapsed", "infinite: stuck", "ends at step 12", ...
std::string end_text(const analyzers::replay::Trace& trace,
                     const analyzers::replay::StepSeries& series);

/// Why steps were lost: "overflow by the scale", or NaN in the model, which no scale cures; empty
/// where none was.
std::string why_text(const analyzers::replay::Trace& trace);

/// Whether some loss scale may help the run: else no settings are recommended.
bool gives_settings(const analyzers::replay::PolicyStudy& study);

/// A line of an answer. One to paste is shown as it is, together with those beside it.
struct AnswerLine {
  std::string text;
  bool paste = false;
};
/// What the run did, and whether the replay of its own policy equals it; the recommended static
/// scale; the best dynamic settings with lines to paste, or why none were searched. `asked`: whose,
/// as --framework has it; may be empty.
std::vector<AnswerLine> answer_lines(const analyzers::replay::PolicyStudy& study,
                                     std::string_view asked = "");
/// The recommended static scale, and what it would have done; empty where there is none. It and the
/// next two end in a line break.
std::string fixed_text(const analyzers::replay::PolicyStudy& study);
/// Why no dynamic settings were found; empty where nobody asked and nothing can be.
std::string not_tuned_text(const analyzers::replay::PolicyStudy& study, std::string_view asked);
/// Whether the replay of the run's own policy equals the run; empty where it has none.
std::string check_text(const analyzers::replay::PolicyStudy& study);
/// What the policies are held against, with names: the run itself, the recommended static scale,
/// and the best dynamic settings.
std::vector<std::pair<std::string, const analyzers::replay::Trace*>> references(
    const analyzers::replay::PolicyStudy& study);
/// What "3 to 5" steps skipped means; a sentence.
std::string unknown_steps_text();

}  // namespace halfscope::reports::answer
