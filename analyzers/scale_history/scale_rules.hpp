// SPDX-License-Identifier: Apache-2.0
// Rules of dynamic loss scales, and the parts of timeline_facts(), which share them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {

/// Clean steps after which a scale grows: what PyTorch (2000) and DeepSpeed, Megatron-LM and
/// MindSpore (1000) have.
inline constexpr std::uint64_t kUsualWindow = 1000;
/// Frameworks set as many, or more.
inline constexpr std::uint64_t kLeastWindow = 100;

/// Fewer than these are few in the shortest log: TimelineFacts::many_skipped().
inline constexpr std::uint64_t kMany = 3;
/// Whether these are more than 5 % of the steps.
bool more_than_few(std::uint64_t count, std::uint64_t of);

/// Whether skipped steps may leave a scale as it was because it is the least allowed: it is the
/// least of the run, and no floor is as high as this.
inline bool may_be_floor(double scale, const TimelineFacts& facts) {
  constexpr double kHighestFloor = 1024;
  return scale <= kHighestFloor && scale == facts.scale_least;
}

/// How often a scale above 0 was halved on its way from one to another.
inline double halvings_between(double from, double to) {
  return std::log2(std::min(from / to, std::numeric_limits<double>::max()));
}

inline bool is_fall(const ScaleChange& change) { return change.to < change.from; }
inline bool is_rise(const ScaleChange& change) { return change.to > change.from; }

/// Whether every step of a range was skipped. `last`: of a range that the log ends in.
inline bool all_skipped(const frames::SkippedSteps& range, std::int64_t last) {
  return range.count.low == static_cast<std::uint64_t>(range.last.value_or(last) - range.first + 1);
}

/// The last step that was or may have been skipped; one beyond all if the log ends before it tells.
std::optional<std::int64_t> last_skipped(const TimelineFacts& facts);

/// The loss scales that the log's scalars tell, by step.
struct ToldScale {
  std::int64_t step = 0;
  double scale = 1;
};
std::vector<ToldScale> told_scales(const underflow::LogFindings& log);

/// Clean steps after which the scale doubled, or so many at the most, as in ScaleSettings.
std::optional<Interval> growth_window(const underflow::LogFindings& log,
                                      const TimelineFacts& facts);

// timeline_facts() calls these once it has the steps, scales and falls.

/// Sets what TimelineFacts says of NaN and infinities, of steps skipped in vain, and the state.
void set_state(const underflow::LogFindings& log, TimelineFacts& facts);
/// Sets how often the scale was halved, where it alone tells of skipped steps. A line shows a fall
/// as often as a step is skipped, however often between two lines it grew and fell.
void set_halvings(const underflow::LogFindings& log, TimelineFacts& facts);
/// Sets TimelineFacts::slow_start where most skipped steps are the first ones. first: of the steps
/// that the log tells of; empty where it numbers entries.
void set_slow_start(const underflow::LogFindings& log, TimelineFacts& facts,
                    std::optional<std::int64_t> first);
/// Sets TimelineFacts::settings, of a run whose steps the scale decided about: not where it is
/// constant.
void set_settings(const underflow::LogFindings& log, TimelineFacts& facts);
/// Sets TimelineFacts::jump, where the scale did not grow as dynamic ones grow, and
/// ScaleFall::before_reset. Needs TimelineFacts::settings.
void set_jump(TimelineFacts& facts);

}  // namespace halfscope::analyzers::scale_history
