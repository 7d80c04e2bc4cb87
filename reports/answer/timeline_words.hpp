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

/// A section a log.
std::vector<Section> timeline_sections(const analyzers::Findings& found);

/// That a loss scale fell to 1 or less, and what drove it: a sentence each.
struct CollapseWords {
  std::string what, driver;
};
inline constexpr std::string_view kAfterCollapse =
    "A scale of 1 or less scales nothing, so the scale is not the cause: look for NaN or "
    "infinities in the model, the data or the learning rate.";
std::optional<CollapseWords> collapse_words(const analyzers::scale_history::TimelineFacts& facts);
/// Of the first log of which that holds.
std::optional<CollapseWords> collapse_words(const analyzers::Findings& found);

/// What is wrong, by the scalars and skipped steps of a log, and what to do about it.
struct AlarmWords {
  std::string what, action;
  bool lasts = false;        ///< to the end of the log
  bool minor = false;        ///< costs few steps
  bool scale_helps = false;  ///< another loss scale may
};
/// In timeline_alarm.cpp.
std::vector<AlarmWords> alarm_words(const analyzers::scale_history::TimelineFacts& facts);
/// Of every log of which that holds, named where there are several.
std::vector<AlarmWords> alarm_words(const analyzers::Findings& found);

/// "65536 (2^16)"; "0" and what is not finite as they are.
std::string scale_name(double scale);

}  // namespace halfscope::reports::answer
