// SPDX-License-Identifier: Apache-2.0
// Rules of dynamic loss scales, and the parts of timeline_facts(), which share
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

inline constexpr std::int64_t kAfterAll = std::numeric_limits<std::int64_t>::max();  ///< a step

/// The clean steps before a scale grows: 2000 in PyTorch, 1000 in DeepSpeed,
/// Megatron-LM and MindSpore. No framework's setting is below kLeastWindow.
inline constexpr std::uint64_t kUsualWindow = 1000, kLeastWindow = 100;

/// Fewer than these are few in the shortest log: TimelineFacts::many_skipped().
inline constexpr std::uint64_t kMany = 3;
/// Returns true for more than 5 % of the steps.
inline bool more_than_few(std::uint64_t count, std::uint64_t of) {
  constexpr double kFew = 0.05;
  return static_cast<double>(count) > kFew * static_cast<double>(of);
}

/// Returns true if skipped steps may leave a scale unchanged because it is the
/// least allowed: it is the least of the run, and no floor is as high as this.
inline bool may_be_floor(double scale, const TimelineFacts& facts) {
  constexpr double kHighestFloor = 1024;
  return scale <= kHighestFloor && scale == facts.scale_least;
}

/// The number of halvings from one scale above 0 to another.
inline double halvings_between(double from, double to) {
  return std::log2(std::min(from / to, std::numeric_limits<double>::max()));
}

inline bool is_fall(const ScaleChange& change) { return change.to < change.from; }
inline bool is_rise(const ScaleChange& change) { return change.to > change.from; }

/// Returns true if every step of a range was skipped. `last`: the log's last
/// step, for a range that the log ends in.
inline bool all_skipped(const frames::SkippedSteps& range, std::int64_t last) {
  return range.count.low == static_cast<std::uint64_t>(range.last.value_or(last) - range.first + 1);
}

/// The last step that was or may have been skipped; kAfterAll: the log ends
/// before it says which.
std::optional<std::int64_t> last_skipped(const TimelineFacts& facts);

/// The clean steps before the scale doubles, as in ScaleSettings.
std::optional<Interval> growth_window(const TimelineFacts& facts);

// timeline_facts() calls these once it has the steps, scales and falls.

/// Sets what TimelineFacts says of NaN and infinities, of steps skipped in
/// vain, and the state.
void set_state(const underflow::LogFindings& log, TimelineFacts& facts);
/// Sets TimelineFacts::halvings, if the scale alone shows skipped steps. A line
/// shows one fall however often the scale grew and fell since the line before.
void set_halvings(TimelineFacts& facts);
/// Sets TimelineFacts::slow_start if most skipped steps are the first ones.
/// `first`: the first step of the log; empty if entries are numbered.
void set_slow_start(const underflow::LogFindings& log, TimelineFacts& facts,
                    std::optional<std::int64_t> first);
/// Sets TimelineFacts::settings, unless the scale is constant and skipped no
/// step.
void set_settings(const underflow::LogFindings& log, TimelineFacts& facts);
/// Sets TimelineFacts::jump and ScaleFall::before_reset. Needs
/// TimelineFacts::settings.
void set_jump(TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
