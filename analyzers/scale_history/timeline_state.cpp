// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/timeline_state.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace halfscope::analyzers::scale_history {

using frames::SkippedSteps;
using underflow::LogFindings;

namespace {

constexpr std::uint64_t kLeastInVain = 10;  // a scale that starts high needs some skipped steps
constexpr double kMost = 0.5;               // of the steps
constexpr std::uint64_t kLeastAtStart = 3;
constexpr double kFew = 0.05;  // of the steps: TimelineFacts::many_skipped()

/// Whether the step, or some of those that it is printed for, was skipped.
bool was_skipped(const TimelineFacts& facts, std::int64_t step) {
  if (std::ranges::binary_search(facts.skipped, step)) return true;
  const auto after = std::ranges::upper_bound(facts.ranges, step, {}, &SkippedSteps::first);
  return after != facts.ranges.begin() && step <= std::prev(after)->last.value_or(step);
}

/// What a step's scalars have of a quantity: how many are NaN or infinite; empty: none is there.
std::optional<std::uint64_t> nonfinite_at(const log::StepScalars& scalars, Quantity of) {
  const auto of_tag = [&](std::string_view tag) -> std::optional<std::uint64_t> {
    const auto found = scalars.more.find(std::string(tag));
    if (found == scalars.more.end()) return std::nullopt;
    return std::isfinite(found->second) ? 0 : 1;
  };
  switch (of) {
    case Quantity::loss:
      if (!scalars.loss) return std::nullopt;
      return std::isfinite(*scalars.loss) ? 0 : 1;
    case Quantity::gradient_norm: return of_tag(frames::kGradientNorm);
    case Quantity::evaluation_loss: return of_tag(frames::kEvaluationLoss);
    case Quantity::nan_iterations: break;
  }
  const auto found = scalars.more.find(std::string(frames::kNanIterations));
  if (found != scalars.more.end()) return static_cast<std::uint64_t>(found->second);
  return scalars.loss || scalars.learning_rate ? std::optional<std::uint64_t>(0) : std::nullopt;
}

/// A scaler skips a step for its gradients; a loss that is NaN is the model's.
void add_nonfinite(std::int64_t step, std::uint64_t count, bool skipped, Nonfinite& found) {
  if (count == 0) {
    if (found.since) found.last_before = found.last;
    found.since.reset();
    found.count_since = 0;
    return;
  }
  if (found.count == 0) found.first = step;
  found.last = step;
  found.count += count;
  if (skipped) {
    ++found.at_skips;
    return;
  }
  if (!found.since) found.since = step;
  found.count_since += count;
}

void set_nonfinite(const LogFindings& log, TimelineFacts& facts) {
  for (const Quantity of : {Quantity::loss, Quantity::gradient_norm, Quantity::nan_iterations,
                            Quantity::evaluation_loss}) {
    Nonfinite found{of};
    for (const log::StepScalars& scalars : log.scalars) {
      const auto count = nonfinite_at(scalars, of);
      if (!count) continue;
      const bool skipped = of == Quantity::gradient_norm && was_skipped(facts, scalars.step);
      add_nonfinite(scalars.step, *count, skipped, found);
    }
    if (found.count > 0) facts.nonfinite.push_back(found);
  }
}

/// Whether the log tells of steps otherwise than by what was skipped: how many there were.
bool tells_steps(const LogFindings& log) {
  return std::ranges::any_of(log.scalars, [](const log::StepScalars& s) {
    const bool of_skip = s.found_inf.value_or(false) || s.loss_scale;
    return s.loss || s.learning_rate || s.found_inf == false || !of_skip;
  });
}

struct Steps {
  std::int64_t first = 0, last = 0;
};

/// The first and last step that the log tells of.
std::optional<Steps> steps_of(const TimelineFacts& facts) {
  if (facts.numbered) return std::nullopt;
  std::optional<std::int64_t> low = facts.first, high = facts.last;
  for (const SkippedSteps& range : facts.ranges) {
    const auto open_end = range.first + static_cast<std::int64_t>(range.count.high) - 1;
    low = std::min(range.first, low.value_or(range.first));
    high = std::max(range.last.value_or(open_end), high.value_or(range.first));
  }
  if (low && facts.counted_from) low = std::min(*low, *facts.counted_from);
  return low && high ? std::optional(Steps{*low, *high}) : std::nullopt;
}

/// The first of the last steps that were skipped one and all; `last` + 1 where the last was not.
std::int64_t tail_of_skips(const TimelineFacts& facts, std::int64_t last) {
  std::int64_t from = last + 1;
  for (auto range = facts.ranges.rbegin();;) {
    if (std::ranges::binary_search(facts.skipped, from - 1)) {
      --from;
      continue;
    }
    while (range != facts.ranges.rend() && range->first >= from) ++range;
    if (range == facts.ranges.rend()) return from;
    const std::int64_t end = range->last.value_or(last);
    const bool all = range->count.low == static_cast<std::uint64_t>(end - range->first + 1);
    if (end != from - 1 || !all) return from;
    from = range->first;
  }
}

/// Whether skipped steps did not lower the scale any more, or none is told.
bool at_the_bottom(const TimelineFacts& facts) {
  if (!facts.scale_last || *facts.scale_last <= 1 || facts.ended_at_minimum) return true;
  const auto falls = static_cast<std::uint64_t>(std::ranges::count_if(
      facts.changes, [](const ScaleChange& change) { return change.to < change.from; }));
  const auto halvings =
      static_cast<std::uint64_t>(std::log2(*facts.scale_most / *facts.scale_last));
  return *facts.scale_last == facts.scale_least &&
         facts.skipped_in_all.low >= kLeastInVain + std::max(falls, halvings);
}

bool are_most(std::uint64_t skipped, const Steps& steps) {
  return skipped >= kLeastInVain &&
         static_cast<double>(skipped) >= kMost * static_cast<double>(steps.last - steps.first + 1);
}

/// Whether the last steps, as many as a start may cost, are known to be none of the skipped ones.
bool ends_clean(const TimelineFacts& facts, std::int64_t last) {
  std::int64_t skipped = facts.skipped.empty() ? 0 : facts.skipped.back();
  for (const SkippedSteps& range : facts.ranges) {
    if (range.count.high > 0) skipped = std::max(skipped, range.last.value_or(last));
  }
  return facts.attempts && last - skipped >= static_cast<std::int64_t>(kLeastInVain);
}

void set_in_vain(TimelineFacts& facts, const Steps& steps) {
  if (!at_the_bottom(facts) || ends_clean(facts, steps.last)) return;
  const std::int64_t from = tail_of_skips(facts, steps.last);
  const auto tail = static_cast<std::uint64_t>(steps.last - from + 1);
  const Steps at_one{facts.first_at_one.value_or(steps.first), steps.last};
  if (tail >= kLeastInVain) {
    facts.in_vain = SkippedInVain{from, steps.last, tail, true};
  } else if (facts.attempts && !facts.slow_start && are_most(facts.skipped_in_all.low, steps)) {
    facts.in_vain = SkippedInVain{steps.first, steps.last, facts.skipped_in_all,
                                  facts.skipped_in_all.low == *facts.attempts};
  } else if (facts.attempts && are_most(facts.skipped_at_one, at_one)) {
    facts.in_vain = SkippedInVain{at_one.first, at_one.last, facts.skipped_at_one, false};
  }
}

/// Whether NaN or infinities of training last to the end, as far as scalars tell.
bool lasts(const TimelineFacts& facts) {
  return std::ranges::any_of(facts.nonfinite, [](const Nonfinite& found) {
    return found.since && found.of != Quantity::evaluation_loss;
  });
}

bool is_full(const SkippedSteps& range) {
  return range.last && range.count.low == static_cast<std::uint64_t>(*range.last - range.first + 1);
}

/// The scale that the log tells at a step.
std::optional<double> scale_of_step(const LogFindings& log, std::int64_t step) {
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.step == step) return scalars.loss_scale;
  }
  return std::nullopt;
}

/// The steps skipped from the first one on: one and all, or, of steps that are not told apart,
/// while the scale came down.
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
    const bool falls = range->scale_from && range->scale_to < range->scale_from;
    if (!falls && !(is_full(*range) && range->scale_to)) return start;
    start.skipped += range->count.low;
    start.last = *range->last;
    start.scale = range->scale_to;
    if (range->first == first) start.from = range->scale_from;
    if (!is_full(*range)) return start;
    step = start.last + 1;
  }
}

/// Whether most skipped steps are the first ones.
void set_slow_start(const LogFindings& log, TimelineFacts& facts, std::int64_t first) {
  SlowStart start = skipped_at_start(facts, first);
  if (start.skipped < kLeastAtStart || 2 * start.skipped < facts.skipped_in_all.high) return;
  if (!start.scale) start.scale = scale_of_step(log, start.last + 1);
  if (!start.from) start.from = scale_of_step(log, first);
  facts.slow_start = start;
}

RunState state_of(const TimelineFacts& facts) {
  const bool told = facts.scale_first || facts.skips_told;
  if (facts.in_vain || facts.ended_at_minimum || lasts(facts)) return RunState::broken;
  if (facts.collapse() != nullptr) return RunState::collapsed;
  if (!told) return RunState::unknown;
  const bool none = facts.skipped_in_all.high == 0;
  if (none && facts.scale_least == 1 && facts.scale_most == 1) return RunState::not_needed;
  if (facts.skipped_at_one > 0) return RunState::skipping;
  if (facts.slow_start) return RunState::slow_start;
  if (!none && !facts.attempts) return RunState::unknown;
  if (facts.many_skipped()) return RunState::skipping;
  return facts.perhaps_many_skipped() ? RunState::unknown : RunState::normal;
}

bool are_many(std::uint64_t skipped, const TimelineFacts& facts) {
  return facts.attempts && skipped >= kLeastAtStart &&
         static_cast<double>(skipped) > kFew * static_cast<double>(*facts.attempts);
}

}  // namespace

void set_state(const LogFindings& log, TimelineFacts& facts) {
  set_nonfinite(log, facts);
  const auto steps = steps_of(facts);
  if (steps && tells_steps(log)) {
    facts.first_attempt = steps->first;
    facts.last_attempt = steps->last;
    facts.attempts = static_cast<std::uint64_t>(steps->last - steps->first) + 1;
  }
  if (steps) set_slow_start(log, facts, steps->first);
  if (steps) set_in_vain(facts, *steps);
  facts.state = state_of(facts);
}

std::optional<std::int64_t> TimelineFacts::nonfinite_since() const {
  std::optional<std::int64_t> earliest, since;
  for (const Nonfinite& found : nonfinite) {
    if (found.at_skips == found.count || found.of == Quantity::evaluation_loss) continue;
    earliest = std::min(found.first, earliest.value_or(found.first));
    if (found.since) since = std::min(*found.since, since.value_or(*found.since));
  }
  return since ? since : earliest;
}

bool TimelineFacts::alarming() const {
  return in_vain.has_value() || ended_at_minimum ||
         std::ranges::any_of(nonfinite, [](const Nonfinite& f) { return f.at_skips < f.count; });
}

bool TimelineFacts::many_skipped() const { return are_many(skipped_in_all.low, *this); }

bool TimelineFacts::perhaps_many_skipped() const { return are_many(skipped_in_all.high, *this); }

bool TimelineFacts::skips_at_static_scale() const {
  return in_vain && changes.empty() && scale_last.value_or(1) > 1 && !ended_at_minimum;
}

bool TimelineFacts::clear() const {
  if (state != RunState::normal && state != RunState::not_needed) return false;
  const double most = kFew * static_cast<double>(attempts.value_or(0));
  const bool few = static_cast<double>(skipped_in_all.high) <= most;
  return few && skips_told && !alarming() && other_scalers.empty();
}

}  // namespace halfscope::analyzers::scale_history
