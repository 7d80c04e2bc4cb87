// SPDX-License-Identifier: Apache-2.0
// Starts of a loss scale: one that is too high, and one that begins anew in the
// middle of a run.
#include <algorithm>
#include <cmath>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {

using frames::SkippedSteps;
using underflow::LogFindings;

namespace {

constexpr std::uint64_t kFewestSkipped = 3;

/// Returns true if more of these steps were skipped than growth of a scale
/// costs: two in 100 at the most, with a hysteresis of 2.
bool exceeds_growth(const SkippedSteps& range) {
  constexpr double kMostToGrowth = 0.02;
  const std::int64_t steps = *range.last - range.first + 1;
  return static_cast<double>(range.count.low) > kMostToGrowth * static_cast<double>(steps);
}

std::optional<double> scale_of_step(const TimelineFacts& facts, std::int64_t step) {
  const auto at = std::ranges::lower_bound(facts.scales, step, {}, &ScaleAtStep::step);
  return at != facts.scales.end() && at->step == step ? std::optional(at->scale) : std::nullopt;
}

/// The largest scale that lines have for these steps, or the one before them.
std::optional<double> from_of(const SkippedSteps& range) {
  if (range.scales.empty()) return range.scale_from;
  return std::max(range.scale_from.value_or(0), std::ranges::max(range.scales));
}

/// The skipped steps from `first` on: known steps, then ranges in which all
/// steps were skipped, or in which the scale fell, or, at `first`, more than
/// growth explains.
SkippedSteps skipped_at_start(const TimelineFacts& facts, std::int64_t first) {
  SkippedSteps start{first};
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
    start.count += range.count.low;
    start.last = range.last;
    start.scale_to = range.scale_to;
    if (range.first == first) start.scale_from = from;
    if (!full) break;
    step = *range.last + 1;
  }
  return start;
}

/// The scale came down from the first one on: each halving is a skipped step.
SkippedSteps fallen_at_start(const TimelineFacts& facts) {
  for (const ScaleFall& fall : facts.falls) {
    if (!facts.at_start(fall) || !fall.by || !(fall.to > 0)) continue;
    const auto halvings = static_cast<std::uint64_t>(halvings_between(fall.from, fall.to));
    const std::uint64_t most = facts.skips_told ? facts.skipped_in_all.high : halvings;
    return {fall.after, fall.by, std::min(halvings, most), fall.from, fall.to};
  }
  return {};
}

/// Returns true if the log begins with the run's first steps, or no later than
/// its lines are apart. An excerpt that begins later shows no start.
bool has_first_steps(const LogFindings& log, std::int64_t first) {
  constexpr std::size_t kFirstLines = 8;
  std::int64_t apart = 1;  // the most
  for (std::size_t i = 1; i < std::min(log.scalars.size(), kFirstLines); ++i) {
    apart = std::max(apart, log.scalars[i].step - log.scalars[i - 1].step);
  }
  return log.scalars.size() < 2 || first <= 2 * apart;
}

/// No framework's scale doubles after fewer steps than kShortestWindow by
/// default. A log may show a longer window.
bool is_jump(const ScaleChange& change, double window) {
  constexpr double kSmallestJump = 8, kShortestWindow = 16;
  if (!change.by || !(change.from > 0) || !std::isfinite(change.to)) return false;
  const auto steps = static_cast<double>(*change.by - change.after);
  const double doublings = 1 + steps / std::max(kShortestWindow, window);
  return change.to / change.from > std::max(kSmallestJump, std::exp2(doublings));
}

/// The skipped steps of a range that are after one step, up to another.
Interval within(const SkippedSteps& range, std::int64_t after, std::int64_t end) {
  const std::int64_t last = range.last.value_or(std::max(range.first, end));
  const std::int64_t inside = std::min(last, end) - std::max(range.first - 1, after);
  if (inside <= 0) return {};
  const auto steps = static_cast<std::uint64_t>(inside);
  const auto all = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(range.first) + 1;
  const Interval outside(0, all - steps);
  return {std::min(without(range.count, outside).low, steps), std::min(range.count.high, steps)};
}

/// Steps skipped after the jump until the scale was back at a growth above what
/// it was, or lower.
Interval lost_to(const ScaleChange& jump, const TimelineFacts& facts) {
  const auto back = std::ranges::find_if(facts.changes, [&](const ScaleChange& change) {
    return change.after >= *jump.by && change.to <= 2 * jump.from;
  });
  const bool ends = back != facts.changes.end() && back->by;
  Interval lost;
  for (const SkippedSteps& range : facts.skips)
    lost += within(range, jump.after, ends ? *back->by : kAfterAll);
  return lost;
}

}  // namespace

void set_slow_start(const LogFindings& log, TimelineFacts& facts,
                    std::optional<std::int64_t> first) {
  if (first && !has_first_steps(log, *first)) return;
  SkippedSteps start;
  if (first) start = skipped_at_start(facts, *first);
  if (start.count.low < kFewestSkipped) start = fallen_at_start(facts);
  if (start.count.low < kFewestSkipped || 2 * start.count.low < facts.skipped_in_all.high) return;
  if (!start.scale_to) start.scale_to = scale_of_step(facts, *start.last + 1);
  if (!start.scale_from && first) start.scale_from = scale_of_step(facts, *first);
  const bool tried = facts.numbered || facts.last > start.last;
  if (!tried && facts.skips_told) start.scale_to.reset();  // no step in the log has it
  facts.slow_start = start;
}

void set_jump(TimelineFacts& facts) {
  if (facts.numbered) return;
  const auto& settings = facts.settings;
  const std::uint64_t seen = settings && settings->window ? settings->window->low : 0;
  std::optional<double> before_reset;  // the scale before the jump, for the reductions that follow
  for (const ScaleChange& change : facts.changes) {
    if (is_jump(change, static_cast<double>(seen))) {
      before_reset = change.from;
      if (!facts.jump) facts.jump = ScaleJump{change, change.to == facts.scale_first};
      ++facts.jump->times;
      if (facts.skips_told)
        facts.jump->lost = facts.jump->lost.value_or(Interval()) + lost_to(change, facts);
    } else if (is_rise(change)) {
      before_reset.reset();
    }
    for (ScaleFall& fall : facts.falls) {
      if (fall.after == change.after && fall.from == change.from) fall.before_reset = before_reset;
    }
  }
}

}  // namespace halfscope::analyzers::scale_history
