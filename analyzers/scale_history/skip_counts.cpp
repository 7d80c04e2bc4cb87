// SPDX-License-Identifier: Apache-2.0
// How many steps were skipped, at the least and at the most, as far as a log tells.
#include <algorithm>
#include <limits>
#include <optional>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

constexpr double kMostAtOnce = 3;  // doublings between two lines that are surely growth

/// Clean steps between two doublings, at the most: where lines show several in few steps. A scale
/// that is at once where the run began was set anew.
std::optional<double> window_at_most(const TimelineFacts& facts) {
  std::optional<double> window;
  const ScaleChange* before = nullptr;
  for (const ScaleChange& change : facts.changes) {
    if (!is_rise(change) || !change.by) continue;
    const double doublings = halvings_between(change.to, std::max(change.from, 0.0));
    if (doublings > kMostAtOnce && change.to == facts.scale_first) {
      before = nullptr;
      continue;
    }
    const auto narrow = [&](const ScaleChange& first, double times) {
      const auto steps = static_cast<double>(*change.by) - static_cast<double>(first.after) - 1;
      if (times >= 2) window = std::min(window.value_or(steps), steps / (times - 1));
    };
    narrow(change, doublings);
    if (before != nullptr) narrow(*before, doublings + halvings_between(before->to, before->from));
    before = &change;
  }
  return window;
}

/// Steps that may have been skipped between lines that do not show it: after each the scale grew,
/// which is a step, too.
std::uint64_t hidden_between_lines(const underflow::LogFindings& log) {
  std::uint64_t hidden = 0;
  const std::vector<ToldScale> told = told_scales(log);
  for (std::size_t i = 1; i < told.size(); ++i) {
    const auto before = static_cast<std::uint64_t>(told[i - 1].step);
    hidden += (static_cast<std::uint64_t>(told[i].step) - before) / 2;
  }
  return hidden;
}

/// The scale was halved as often as it doubled, and as often as it came down; each doubling takes
/// `window` clean steps, of the first perhaps some before the first line.
std::uint64_t most_halvings(const TimelineFacts& facts, double window) {
  const double down = halvings_between(*facts.scale_first, *facts.scale_last);
  const double steps = static_cast<double>(facts.steps_at_least) + window - 1 + down * window;
  return static_cast<std::uint64_t>(std::max(0.0, steps / (window + 1)));
}

/// Skipped steps that leave the scale, where its falls alone tell of skipped ones: with DeepSpeed's
/// hysteresis of 2 the first at the start and after each growth; at a floor any.
std::uint64_t hidden_at_most(const TimelineFacts& facts) {
  const double least = facts.scale_least.value_or(0);
  const auto fell_there = [&](const ScaleChange& c) { return is_fall(c) && c.to == least; };
  if (may_be_floor(least, facts) && std::ranges::any_of(facts.changes, fell_there)) {
    return facts.steps_at_least;
  }
  return 1 + static_cast<std::uint64_t>(std::ranges::count_if(facts.changes, is_rise));
}

/// Skipped steps, at the least or at the most, as far as the log tells of them.
std::uint64_t least_skipped(const TimelineFacts& facts) {
  return facts.skips_told ? facts.skipped_in_all.low : facts.halvings;
}

std::uint64_t most_skipped(const TimelineFacts& facts) {
  if (!facts.skips_told) return facts.halvings_at_most;
  return facts.skipped_in_all.high + (facts.skips_at_least ? hidden_at_most(facts) : 0);
}

}  // namespace

bool more_than_few(std::uint64_t count, std::uint64_t of) {
  constexpr double kFew = 0.05;
  return static_cast<double>(count) > kFew * static_cast<double>(of);
}

void set_halvings(const underflow::LogFindings& log, TimelineFacts& facts) {
  double all = 0;
  std::uint64_t around = 0;
  for (const ScaleChange& change : facts.changes) {
    if (!is_fall(change) || !(change.to > 0)) continue;
    all += halvings_between(change.from, change.to);
    around += static_cast<std::uint64_t>(change.by.value_or(change.after)) -
              static_cast<std::uint64_t>(change.after);
  }
  facts.halvings = static_cast<std::uint64_t>(all);
  facts.halvings_at_most = std::max(around, facts.halvings);
  const std::uint64_t hidden = hidden_between_lines(log);
  const bool positive = facts.scale_first.value_or(0) > 0 && facts.scale_last.value_or(0) > 0;
  if (facts.numbered || hidden == 0 || !positive) return;
  const auto window = window_at_most(facts);
  const bool usual = window.value_or(kLeastWindow) >= kLeastWindow;
  const std::uint64_t most =
      std::min(most_halvings(facts, usual ? kLeastWindow : 1), facts.halvings + hidden);
  facts.halvings_at_most = std::max(facts.halvings_at_most, most);
  if (usual) facts.window_taken = kLeastWindow;
}

Interval TimelineFacts::skipped_bounds() const {
  const std::uint64_t most = attempts.value_or(std::numeric_limits<std::uint64_t>::max());
  return skips_at_least ? Interval(skipped_in_all.low, std::max(most, skipped_in_all.high))
                        : skipped_in_all;
}

bool TimelineFacts::many_skipped() const {
  const std::uint64_t least = least_skipped(*this);
  return attempts && least >= kMany && more_than_few(least, *attempts);
}

bool TimelineFacts::few_skipped() const {
  const std::uint64_t most = most_skipped(*this);
  return (most < kMany && 2 * most <= steps_at_least) || !more_than_few(most, steps_at_least);
}

}  // namespace halfscope::analyzers::scale_history
