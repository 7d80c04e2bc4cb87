// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/slow_start.hpp"

#include <algorithm>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {

using frames::SkippedSteps;
using underflow::LogFindings;

namespace {

constexpr std::uint64_t kFewestSkipped = 3;

bool is_full(const SkippedSteps& range) {
  return range.last && range.count.low == static_cast<std::uint64_t>(*range.last - range.first + 1);
}

/// Whether more of these steps were skipped than growth of a scale costs.
bool exceeds_growth(const SkippedSteps& range) {
  const std::int64_t steps = range.last.value_or(range.first) - range.first + 1;
  return static_cast<double>(range.count.low) > kMostToGrowth * static_cast<double>(steps);
}

/// The scale that the log tells at a step.
std::optional<double> scale_of_step(const LogFindings& log, std::int64_t step) {
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.step == step) return scalars.loss_scale;
  }
  return std::nullopt;
}

/// The largest scale that lines tell of these steps.
double most_of(const SkippedSteps& range) {
  return std::max(range.scale_from.value_or(0), std::ranges::max(range.scales));
}

/// The steps skipped from the first one on: one and all, or, of steps that are not told apart,
/// while the scale came down, or, of the first of these, more than growth explains.
SlowStart skipped_at_start(const TimelineFacts& facts, std::int64_t first) {
  SlowStart start;
  for (std::int64_t step = first;;) {
    if (std::ranges::binary_search(facts.skipped, step)) {
      ++start.skipped;
      start.last = step++;
      start.scale.reset();
      continue;
    }
    const auto range = std::ranges::lower_bound(facts.ranges, step, {}, &SkippedSteps::first);
    if (range == facts.ranges.end() || range->first != step || !range->last) return start;
    const auto from = range->scales.empty() ? range->scale_from : std::optional(most_of(*range));
    const bool falls = from && range->scale_to && *range->scale_to < *from;
    const bool goes_on = facts.last && *facts.last > *range->last;  // with fewer
    const bool unseen = !from && range->first == first && goes_on && exceeds_growth(*range);
    if (!falls && !unseen && !is_full(*range)) return start;
    start.skipped += range->count.low;
    start.last = *range->last;
    start.scale = range->scale_to;
    if (range->first == first) start.from = from;
    if (!is_full(*range)) return start;
    step = start.last + 1;
  }
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
  if (first <= 1 || log.scalars.size() < 2) return true;
  const std::int64_t before = log.scalars[0].step, after = log.scalars[1].step;
  return first <= after - before;
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

}  // namespace halfscope::analyzers::scale_history
