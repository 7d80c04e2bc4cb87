// SPDX-License-Identifier: Apache-2.0
// The number of skipped steps, at the least and at the most, as far as a log
// shows it.
#include <algorithm>
#include <limits>
#include <optional>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

/// The most clean steps between two doublings, where lines show several
/// doublings in few steps. A scale that is at once where the run began was set
/// anew.
std::optional<double> window_at_most(const TimelineFacts& facts) {
  constexpr double kMostAtOnce = 3;  // doublings between two lines that are surely growth
  std::optional<double> window;
  const ScaleChange* before = nullptr;
  for (const ScaleChange& change : facts.changes) {
    if (!is_rise(change) || !change.by) continue;
    const double doublings = halvings_between(change.to, std::max(change.from, 0.0));
    if (doublings > kMostAtOnce && change.to == facts.scale_first) {
      before = nullptr;
      continue;
    }
    const auto narrow = [&](std::int64_t after, double times) {
      const auto steps = static_cast<double>(*change.by) - static_cast<double>(after) - 1;
      if (times >= 2) window = std::min(window.value_or(steps), steps / (times - 1));
    };
    narrow(change.after, doublings);
    if (before != nullptr)
      narrow(before->after, doublings + halvings_between(before->to, before->from));
    before = &change;
  }
  return window;
}

/// The scale was halved as often as it doubled, and as often as it came down.
/// Each doubling needs `window` clean steps, the first one perhaps some before
/// the first line.
std::uint64_t most_halvings(const TimelineFacts& facts, double window) {
  const double down = halvings_between(*facts.scale_first, *facts.scale_last);
  const double steps = static_cast<double>(facts.steps_at_least) + window - 1 + down * window;
  return static_cast<std::uint64_t>(std::max(0.0, steps / (window + 1)));
}

/// The most skipped steps that leave the scale, if only its falls show skipped
/// steps: any at a floor; else, with a hysteresis of 2, the first one at the
/// start and after each growth.
std::uint64_t hidden_at_most(const TimelineFacts& facts) {
  const bool at_floor = std::ranges::any_of(facts.changes, [&](const ScaleChange& change) {
    return is_fall(change) && may_be_floor(change.to, facts);
  });
  if (at_floor) return facts.steps_at_least;
  return 1 + static_cast<std::uint64_t>(std::ranges::count_if(facts.changes, is_rise));
}

}  // namespace

void set_halvings(TimelineFacts& facts) {
  double all = 0;
  std::uint64_t around = 0, hidden = 0;
  for (const ScaleChange& change : facts.changes) {
    if (!is_fall(change) || !(change.to > 0)) continue;
    all += halvings_between(change.from, change.to);
    around += static_cast<std::uint64_t>(change.by.value_or(change.after) - change.after);
  }
  const auto seen = static_cast<std::uint64_t>(all);
  facts.halvings = {seen, std::max(around, seen)};
  // Between lines that show no fall each skipped step needs one at which the
  // scale grew again.
  for (std::size_t i = 1; i < facts.scales.size(); ++i) {
    hidden += static_cast<std::uint64_t>(facts.scales[i].step - facts.scales[i - 1].step) / 2;
  }
  const bool positive = facts.scale_first.value_or(0) > 0 && facts.scale_last.value_or(0) > 0;
  if (facts.numbered || hidden == 0 || !positive) return;
  const bool usual = window_at_most(facts).value_or(kLeastWindow) >= kLeastWindow;
  const std::uint64_t most =
      std::min(most_halvings(facts, usual ? kLeastWindow : 1), seen + hidden);
  facts.halvings.high = std::max(facts.halvings.high, most);
  if (usual) facts.window_taken = kLeastWindow;
}

Interval TimelineFacts::skipped_bounds() const {
  const std::uint64_t most = attempts.value_or(std::numeric_limits<std::uint64_t>::max());
  return skips_at_least ? Interval(skipped_in_all.low, std::max(most, skipped_in_all.high))
                        : skipped_in_all;
}

bool TimelineFacts::many_skipped() const {
  const std::uint64_t least = skips_told ? skipped_in_all.low : halvings.low;
  return attempts && least >= kMany && more_than_few(least, *attempts);
}

bool TimelineFacts::few_skipped() const {
  const std::uint64_t hidden = skips_told && skips_at_least ? hidden_at_most(*this) : 0;
  const std::uint64_t most = (skips_told ? skipped_in_all : halvings).high + hidden;
  return (most < kMany && 2 * most <= steps_at_least) || !more_than_few(most, steps_at_least);
}

}  // namespace halfscope::analyzers::scale_history
