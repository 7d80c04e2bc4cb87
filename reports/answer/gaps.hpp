// SPDX-License-Identifier: Apache-2.0
// Facts that another tool's log does not show, their consequences, and how to record them.
#pragma once

#include <fmt/format.h>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::answer {

/// Returns the name that JSON has: "zeros", "underflow", ...
std::string_view name_of(analyzers::frames::Gap gap);

/// One fact that a log does not show.
struct Unknown {
  analyzers::frames::Gap gap;
  std::string_view what;  ///< in a few words: "which scale gradients carry"
  std::string text;       ///< a sentence: what is unknown, and the consequence for this log
};

/// Lines of code that record the missing data in the next run.
struct Recording {
  std::string_view where;  ///< the place of the lines in the training script
  std::string_view lines;  ///< three lines of Python

  std::string sentence() const { return fmt::format("To record it next time, {}:", where); }
};

enum class Framework : std::uint8_t { pytorch, deepspeed, tensorflow, paddle };
Recording recording_for(Framework framework);

struct LogGaps {
  std::string log;
  std::string kind;              ///< "TensorBoard histograms"
  std::vector<Unknown> unknown;  ///< most important first
  Recording recording;
};

/// Title above the gaps of several logs.
inline constexpr std::string_view kGapsTitle = "What the logs do not show";
/// For example "What the log does not show (TensorBoard histograms)".
std::string title_of(const LogGaps& gaps, bool several_logs);

/// Returns the gaps of each log that another tool wrote. A gap without a consequence for the log is
/// omitted: for example if no value is near zero, or --recorded-scale gave the scale.
std::vector<LogGaps> could_not_tell(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
