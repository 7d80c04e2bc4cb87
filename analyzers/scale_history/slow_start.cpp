// SPDX-License-Identifier: Apache-2.0
// Starts of a loss scale: one that is too high, and one that begins anew in the middle of a run.
#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {

using frames::SkippedSteps;
using underflow::LogFindings;

namespace {

constexpr std::uint64_t kFewestSkipped = 3;

/// Whether more of these steps were skipped than growth of a scale costs: two in 100 at the most,
/// with a hysteresis of 2.
bool exceeds_growth(const SkippedSteps& range) {
  constexpr double kMostToGrowth = 0.02;
  const std::int64_t steps = range.last.value_or(range.first) - range.first + 1;
  return static_cast<double>(range.count.low) > kMostToGrowth * static_cast<double>(steps);
}

/// The scale that the log tells at a step.
std::optional<double> scale_of_step(const LogFindings& log, std::int64_t step) {
  const auto at = std::ranges::lower_bound(log.scalars, step, {}, &log::StepScalars::step);
  return at != log.scalars.end() && at->step == step ? at->loss_scale : std::nullopt;
}

/// The largest scale that lines tell of these steps, or the one before them.
std::optional<double> from_of(const SkippedSteps& range) {
  if (range.scales.empty()) return range.scale_from;
  return std::max(range.scale_from.value_or(0), std::ranges::max(range.scales));
}

/// Returns the run of skipped steps that begins at `first`: known steps, then ranges in which all
/// steps were skipped, or in which the scale fell, or, at `first`, more than growth explains.
SlowStart skipped_at_start(const TimelineFacts& facts, std::int64_t first) {
  SlowStart start;
  std::int64_t step = first;
  for (const SkippedSteps& range : facts.skips) {
    if (range.first < step) continue;
    if (range.first != step || !range.last) break;
    const auto from = from_of(range);
    const bool full = all_skipped(range, *range.last);
    const bool falls = from && range.scale_to && *range.scale_to < *from;
    const bool goes_on = facts.last && *facts.last > *range.last;  // with fewer
    const bool unseen = !from && range.first == first && goes_on && exceeds_growth(range);
    if (!falls && !unseen && !full) break;
    start.skipped += range.count.low;
    start.last = *range.last;
    start.scale = range.scale_to;
    if (range.first == first) start.from = from;
    if (!full) break;
    step = start.last + 1;
  }
  return start;
}

/// The scale came down from the first one told on: each halving is a skipped step.
std::optional<SlowStart> fallen_at_start(const TimelineFacts& facts) {
  const auto fall = std::ranges::find_if(
      facts.falls, [&](const ScaleFall& f) { return facts.at_start(f) && f.last && f.to > 0; });
  if (fall == facts.falls.end()) return std::nullopt;
  const auto halvings = static_cast<std::uint64_t>(halvings_between(fall->from, fall->to));
  const std::uint64_t most = facts.skips_told ? facts.skipped_in_all.high : halvings;
  return SlowStart{std::min(halvings, most), *fall->last, fall->from, fall->to};
}

/// Whether the log has the run's first steps: it begins with them, or no later than its lines are
/// apart. An excerpt that begins later shows no start.
bool has_first_steps(const LogFindings& log, std::int64_t first) {
  constexpr std::size_t kFirstLines = 8;
  std::int64_t apart = 1;  // the most
  for (std::size_t i = 1; i < std::min(log.scalars.size(), kFirstLines); ++i) {
    apart = std::max(apart, log.scalars[i].step - log.scalars[i - 1].step);
  }
  return log.scalars.size() < 2 || first <= 2 * apart;
}

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
Interval within(const SkippedSteps& range, std::int64_t after, std::int64_t end) {
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
  Interval lost;
  for (const SkippedSteps& range : facts.skips) lost += within(range, jump.after, end);
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

void set_slow_start(const LogFindings& log, TimelineFacts& facts,
                    std::optional<std::int64_t> first) {
  std::optional<SlowStart> start;
  if (first && !has_first_steps(log, *first)) return;
  if (first) start = skipped_at_start(facts, *first);
  if (!start || start->skipped < kFewestSkipped) start = fallen_at_start(facts);
  if (!start || start->skipped < kFewestSkipped) return;
  if (2 * start->skipped < facts.skipped_in_all.high) return;
  if (!start->scale) start->scale = scale_of_step(log, start->last + 1);
  if (!start->from && first) start->from = scale_of_step(log, *first);
  const bool tried = facts.numbered || facts.last.value_or(start->last) > start->last;
  if (!tried && facts.skips_told) start->scale.reset();  // of a step that is not in the log
  facts.slow_start = start;
}

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
