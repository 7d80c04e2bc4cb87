// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/scale_jump.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfscope::analyzers::scale_history {
namespace {

/// No framework's scale doubles after fewer steps than these unless it is told to; where the log
/// shows a longer window, that holds.
constexpr double kShortestWindow = 16;
constexpr double kSmallestJump = 8;

bool is_jump(const ScaleChange& change, double window) {
  if (!change.by || !(change.from > 0) || !std::isfinite(change.to)) return false;
  const double doublings = 1 + static_cast<double>(*change.by - change.after) / window;
  return change.to / change.from > std::max(kSmallestJump, std::exp2(doublings));
}

/// Of a range's skipped steps those that are after one step, up to another.
Interval within(const frames::SkippedSteps& range, std::int64_t after, std::int64_t end) {
  const std::int64_t last = range.last.value_or(std::max(range.first, end));
  const std::int64_t first_inside = std::max(range.first, after + 1);
  const std::int64_t last_inside = std::min(last, end);
  if (last_inside < first_inside) return {};
  const auto steps = [](std::int64_t from, std::int64_t to) {
    return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from) + 1;
  };
  const std::uint64_t inside = steps(first_inside, last_inside);
  const std::uint64_t outside = steps(range.first, last) - inside;
  const std::uint64_t least = range.count.low > outside ? range.count.low - outside : 0;
  return {std::min(least, inside), std::min(range.count.high, inside)};
}

/// Steps skipped after the jump until the scale was back at a growth above what it was, or lower.
Interval lost_to(const ScaleChange& jump, const TimelineFacts& facts) {
  std::optional<std::int64_t> back;
  for (const ScaleChange& change : facts.changes) {
    if (change.after < *jump.by || !(change.to <= 2 * jump.from)) continue;
    back = change.by;
    break;
  }
  const std::int64_t end = back ? *back : std::numeric_limits<std::int64_t>::max();
  const auto after_it = [&](std::int64_t step) { return jump.after < step && step <= end; };
  Interval lost(static_cast<std::uint64_t>(std::ranges::count_if(facts.skipped, after_it)));
  for (const frames::SkippedSteps& range : facts.ranges) lost += within(range, jump.after, end);
  return lost;
}

void add_jump(const ScaleChange& change, TimelineFacts& facts) {
  if (!facts.jump) {
    facts.jump = ScaleJump{
        change.after, *change.by, change.from, change.to, change.to == facts.scale_first, 0};
  }
  ScaleJump& jump = *facts.jump;
  ++jump.times;
  if (facts.skips_told) jump.lost = jump.lost.value_or(Interval()) + lost_to(change, facts);
}

}  // namespace

void set_jump(TimelineFacts& facts) {
  if (facts.numbered) return;
  const auto& settings = facts.settings;
  const std::uint64_t seen = settings && settings->window ? settings->window->low : 0;
  const double window = std::max(kShortestWindow, static_cast<double>(seen));
  std::optional<double> before_reset;  // of the reductions since
  for (const ScaleChange& change : facts.changes) {
    if (is_jump(change, window)) {
      add_jump(change, facts);
      before_reset = change.from;
    } else if (change.to > change.from) {
      before_reset.reset();
    }
    for (ScaleFall& fall : facts.falls) {
      if (fall.first == change.after && fall.from == change.from) fall.before_reset = before_reset;
    }
  }
}

}  // namespace halfscope::analyzers::scale_history
