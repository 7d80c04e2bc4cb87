// SPDX-License-Identifier: Apache-2.0
// What the log of another tool does not show, what that means for the answers, and how to record
// it. Names from logs are printable.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::answer {

/// "zeros", "underflow", ...: as JSON has it.
std::string_view name_of(analyzers::frames::Gap gap);

/// One thing a log could not tell.
struct Unknown {
  analyzers::frames::Gap gap;
  std::string_view what;  ///< in few words: "which scale gradients carry"
  std::string text;       ///< a sentence: what is not known, and what follows for this log
};

/// Lines that record what is missing, next time.
struct Recording {
  std::string_view where;  ///< what they are put around
  std::string_view lines;  ///< three, of Python

  std::string sentence() const { return fmt::format("To record it next time, {}:", where); }
};

enum class Framework : std::uint8_t { pytorch, deepspeed, tensorflow, paddle };
Recording recording_for(Framework framework);

struct LogGaps {
  std::string log;
  std::string kind;              ///< "TensorBoard histograms"
  std::vector<Unknown> unknown;  ///< what most depends on first
  Recording recording;
};

/// Above the gaps of several logs.
inline constexpr std::string_view kGapsTitle = "What the logs do not show";
/// "What the log does not show (TensorBoard histograms)"
std::string title_of(const LogGaps& gaps, bool several_logs);

/// Of every log that is neither a run log nor of tensors. A gap that has no consequence for what
/// the log holds is left out: no value near zero, a scale that --recorded-scale told.
std::vector<LogGaps> could_not_tell(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::answer
