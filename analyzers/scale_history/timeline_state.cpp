// SPDX-License-Identifier: Apache-2.0
// Whether a run did well, as far as its loss scale, its skipped steps and its scalars tell.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <ranges>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {

using frames::SkippedSteps;
using underflow::LogFindings;

namespace {

constexpr std::uint64_t kLeastInVain = 10;  // a scale that starts high needs some skipped steps
constexpr double kMost = 0.5;               // of the steps
constexpr std::size_t kFewNamed = 3;        // steps, as answers name them one by one
/// Number of steps that a start may cost: from 2^32 to 1 by halves, each after two overflows.
constexpr std::uint64_t kLongestStart = 64;

/// Whether the scale fell at the step, or between lines around it.
bool fell_at(const TimelineFacts& facts, std::int64_t step) {
  auto change = std::ranges::upper_bound(facts.changes, step, {}, &ScaleChange::after);
  while (change != facts.changes.begin()) {  // one change ends where the next one begins
    --change;
    if (change->by.value_or(step) < step) return false;
    if (is_fall(*change)) return true;
  }
  return false;
}

/// Whether the step, or some of those that it is printed for, was skipped: where the scale alone
/// tells, it fell there.
bool was_skipped(const TimelineFacts& facts, std::int64_t step) {
  if (!facts.skips_told) return fell_at(facts, step);
  if (std::ranges::binary_search(facts.skipped, step)) return true;
  const auto after = std::ranges::upper_bound(facts.ranges, step, {}, &SkippedSteps::first);
  return after != facts.ranges.begin() && step <= std::prev(after)->last.value_or(step);
}

/// Of a run log it is what somebody recorded: any number.
std::uint64_t count_of(double value) {
  return value >= 0 && value < 0x1p63 ? static_cast<std::uint64_t>(value) : 0;
}

/// What a step's scalars have of a quantity: how many are NaN or infinite; empty: none is there.
std::optional<std::uint64_t> nonfinite_at(const log::StepScalars& scalars, Quantity of) {
  std::optional<double> value = scalars.loss;
  if (of != Quantity::loss) {
    const std::string_view tag = of == Quantity::gradient_norm     ? frames::kGradientNorm
                                 : of == Quantity::evaluation_loss ? frames::kEvaluationLoss
                                                                   : frames::kNanIterations;
    const auto found = scalars.more.find(std::string(tag));
    value = found == scalars.more.end() ? std::nullopt : std::optional(found->second);
  }
  const bool counts = of == Quantity::nan_iterations;
  if (!value)
    return counts && (scalars.loss || scalars.learning_rate) ? std::optional(0) : std::nullopt;
  return counts ? count_of(*value) : std::isfinite(*value) ? 0 : 1;
}

/// A scaler skips a step for its gradients; a loss that is NaN is the model's.
void add_nonfinite(std::int64_t step, std::uint64_t count, bool skipped, Nonfinite& found) {
  if (count == 0) {
    if (found.since) found.last_before = found.last_since;
    found.since.reset();
    found.count_since = 0;
    found.last_finite = step;
    found.finite_loss = false;
    return;
  }
  if (found.count == 0) found.first = step;
  found.last = step;
  found.count += count;
  found.few.push_back(step);
  if (found.few.size() > kFewNamed) found.few.erase(found.few.begin());
  if (skipped) {
    ++found.at_skips;
    return;
  }
  if (!found.first_applied) found.first_applied = step;
  if (!found.since) found.since = step;
  found.last_since = step;
  found.count_since += count;
}

/// Of a log that tells a loss scale and not which steps it skipped: norms, few of those printed,
/// that finite ones follow are those of skipped steps.
bool explained(const Nonfinite& found, std::uint64_t of, const TimelineFacts& facts) {
  const bool scaled = !facts.skips_told && facts.scale_most.value_or(1) > 1;
  return scaled && found.of == Quantity::gradient_norm && !found.since &&
         !more_than_few(found.count, of);
}

void set_nonfinite(const LogFindings& log, TimelineFacts& facts) {
  for (const Quantity of : {Quantity::loss, Quantity::gradient_norm, Quantity::nan_iterations,
                            Quantity::evaluation_loss}) {
    Nonfinite found{of};
    std::uint64_t of_told = 0;
    for (const log::StepScalars& scalars : log.scalars) {
      const auto count = nonfinite_at(scalars, of);
      // Hugging Face's Trainer prints 0 for losses that are NaN.
      const bool finite_loss = std::isnormal(scalars.loss.value_or(0));
      if (!count) {  // some logs keep finite norms only once one was not
        if (finite_loss && found.count == 0) found.last_finite = scalars.step;
        continue;
      }
      ++of_told;
      const bool skipped = of == Quantity::gradient_norm && was_skipped(facts, scalars.step);
      add_nonfinite(scalars.step, *count, skipped, found);
      found.finite_loss |= found.since && finite_loss;
    }
    if (explained(found, of_told, facts)) {
      found.at_skips = found.count;
      found.first_applied.reset();
    }
    if (found.count > 0) facts.nonfinite.push_back(found);
  }
}

/// Sets TimelineFacts::losses and loss_missing_since. Some programs leave out a loss that is NaN.
void set_missing_loss(const LogFindings& log, TimelineFacts& facts) {
  std::uint64_t with = 0, missing = 0;
  std::optional<std::int64_t> since;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss && missing > 0) with = 0;  // it comes and goes
    if (scalars.loss) {
      ++facts.losses;
      ++with;
      missing = 0;
    } else if (scalars.learning_rate && missing++ == 0) {
      since = scalars.step;
    }
  }
  if (with >= kMany && missing >= kMany) facts.loss_missing_since = since;
}

/// Whether the log tells of steps otherwise than by what was skipped: how many there were.
bool tells_steps(const LogFindings& log) {
  return std::ranges::any_of(log.scalars, [](const log::StepScalars& s) {
    const bool of_skip = s.found_inf.value_or(false) || s.loss_scale;
    return s.loss || s.learning_rate || s.found_inf == false || !of_skip;
  });
}

struct StepRange {
  std::int64_t first = 0, last = 0;
};

/// The first and last step that the log tells of.
std::optional<StepRange> steps_of(const TimelineFacts& facts) {
  if (facts.numbered) return std::nullopt;
  std::optional<std::int64_t> low = facts.first, high = facts.last;
  for (const SkippedSteps& range : facts.ranges) {
    const auto open_end = range.first + static_cast<std::int64_t>(range.count.high) - 1;
    low = std::min(range.first, low.value_or(range.first));
    high = std::max(range.last.value_or(open_end), high.value_or(range.first));
  }
  if (low && facts.counted_from) low = std::min(*low, *facts.counted_from);
  return low && high ? std::optional(StepRange{*low, *high}) : std::nullopt;
}

/// The first of the last steps that were skipped one and all; `last` + 1 where the last was not.
std::int64_t tail_of_skips(const TimelineFacts& facts, std::int64_t last) {
  std::int64_t from = last + 1;
  for (const SkippedSteps& range : facts.skips | std::views::reverse) {
    if (range.first >= from) continue;
    if (range.last.value_or(last) != from - 1 || !all_skipped(range, last)) break;
    from = range.first;
  }
  return from;
}

/// Whether skipped steps did not lower the scale any more, or none is told.
bool at_the_bottom(const TimelineFacts& facts) {
  if (!facts.scale_last) return facts.skipped_in_all.low > kLongestStart;
  if (*facts.scale_last <= 1 || facts.ended_at_minimum) return true;
  const auto falls = static_cast<std::uint64_t>(std::ranges::count_if(facts.changes, is_fall));
  const auto halvings =
      static_cast<std::uint64_t>(halvings_between(*facts.scale_most, *facts.scale_last));
  return *facts.scale_last == facts.scale_least &&
         facts.skipped_in_all.low >= kLeastInVain + std::max(falls, halvings);
}

bool are_most(std::uint64_t skipped, const StepRange& steps) {
  return skipped >= kLeastInVain &&
         static_cast<double>(skipped) >= kMost * static_cast<double>(steps.last - steps.first + 1);
}

/// Whether the last kLeastInVain steps, or more, are known to be none of the skipped ones.
bool ends_clean(const TimelineFacts& facts, std::int64_t last) {
  const std::int64_t skipped = last_skipped(facts).value_or(0);
  return facts.attempts && last - static_cast<std::int64_t>(kLeastInVain) >= skipped;
}

void set_in_vain(TimelineFacts& facts, const StepRange& steps) {
  if (!at_the_bottom(facts) || ends_clean(facts, steps.last)) return;
  const std::int64_t from = tail_of_skips(facts, steps.last);
  const auto tail = static_cast<std::uint64_t>(steps.last - from + 1);
  const StepRange at_one{facts.first_at_one.value_or(steps.first), steps.last};
  if (tail >= kLeastInVain) {
    facts.in_vain = SkippedInVain{from, steps.last, tail, true};
    const bool placed =
        facts.ranges.empty() || facts.ranges.back().last || from < facts.ranges.back().first;
    if (!placed) facts.in_vain->last.reset();
  } else if (facts.attempts && !facts.slow_start && are_most(facts.skipped_in_all.low, steps)) {
    facts.in_vain = SkippedInVain{steps.first, steps.last, facts.skipped_in_all,
                                  facts.skipped_in_all.low == *facts.attempts};
  } else if (facts.attempts && are_most(facts.skipped_at_one, at_one)) {
    facts.in_vain = SkippedInVain{at_one.first, at_one.last, facts.skipped_at_one, false};
  }
}

/// How often the scale grew between skipped steps that are numbered alone: it came back to the same
/// or more, and was not at its floor.
std::uint64_t growths_between(const LogFindings& log, const TimelineFacts& facts) {
  std::uint64_t growths = 0;
  const std::vector<ToldScale> told = told_scales(log);
  for (std::size_t i = 1; i < told.size(); ++i) {
    const double scale = told[i].scale;
    growths += scale >= told[i - 1].scale && !may_be_floor(scale, facts) ? 1 : 0;
  }
  return growths;
}

/// Of steps that are known: as many within kWindow steps as take the scale to a thousandth.
std::optional<SkipBurst> burst_of(const TimelineFacts& facts) {
  constexpr std::int64_t kWindow = 50;
  constexpr std::size_t kLeast = 10;
  const std::vector<std::int64_t>& skipped = facts.skipped;
  const std::int64_t start = facts.slow_start ? facts.slow_start->last : facts.first_attempt - 1;
  for (std::size_t i = 0; i + kLeast <= skipped.size(); ++i) {
    const std::int64_t first = skipped[i];
    if (first <= start || skipped[i + kLeast - 1] - first >= kWindow) continue;
    std::size_t end = i + kLeast;
    while (end < skipped.size() && skipped[end] - first < kWindow) ++end;
    return SkipBurst{first, skipped[end - 1], end - i};
  }
  return std::nullopt;
}

/// A schedule that waits for an update leaves the learning rate of a skipped step to the next one.
void set_schedule(const LogFindings& log, TimelineFacts& facts) {
  const log::StepScalars* before = nullptr;
  for (const log::StepScalars& scalars : log.scalars) {
    const bool next = before != nullptr && before->step + 1 == scalars.step;
    if (next && before->found_inf.value_or(false) && before->learning_rate &&
        scalars.learning_rate) {
      ++facts.schedule_known;
      if (*before->learning_rate != *scalars.learning_rate) ++facts.schedule_ahead;
    }
    before = &scalars;
  }
}

RunState state_of(const TimelineFacts& facts) {
  const bool told = facts.scale_first || facts.skips_told;
  const bool lasts = std::ranges::any_of(facts.nonfinite, &Nonfinite::lasts);
  if (facts.in_vain || facts.ended_at_minimum || lasts) return RunState::broken;
  if (facts.collapse() != nullptr || facts.below_one()) return RunState::collapsed;
  if (!told) return RunState::unknown;
  const bool none = facts.skipped_in_all.high == 0;
  if (none && facts.scale_least == 1 && facts.scale_most == 1) return RunState::not_needed;
  if (none && facts.scale_most == 0) return RunState::unknown;
  if (facts.skipped_at_one > 0) return RunState::skipping;
  if (facts.slow_start) return RunState::slow_start;
  if (!none && facts.steps_at_least == 0) return RunState::unknown;
  if (facts.many_skipped()) return RunState::skipping;
  const bool known = facts.few_skipped() && facts.other_scalers.empty() && !facts.burst;
  return known ? RunState::normal : RunState::unknown;
}

}  // namespace

void set_state(const LogFindings& log, TimelineFacts& facts) {
  set_nonfinite(log, facts);
  set_missing_loss(log, facts);
  const auto steps = steps_of(facts);
  if (steps) facts.steps_at_least = static_cast<std::uint64_t>(steps->last - steps->first) + 1;
  if (steps && tells_steps(log)) {
    facts.first_attempt = steps->first;
    facts.last_attempt = steps->last;
    facts.attempts = facts.steps_at_least;
  }
  if (facts.numbered) facts.steps_at_least = kLeastWindow * growths_between(log, facts);
  if (!facts.skips_told) set_halvings(log, facts);
  set_slow_start(log, facts, steps ? std::optional(steps->first) : std::nullopt);
  if (steps) set_in_vain(facts, *steps);
  set_schedule(log, facts);
  if (!facts.scale_first && !facts.numbered) facts.burst = burst_of(facts);
  set_settings(log, facts);
  set_jump(facts);
  facts.state = state_of(facts);
}

bool Nonfinite::lasts() const {
  if (!since) return false;
  const auto steps = static_cast<std::uint64_t>(last_since - *since);
  switch (of) {
    case Quantity::evaluation_loss: return false;
    case Quantity::loss: return true;  // the model's
    case Quantity::gradient_norm:      // a start has finite losses, and is short
      return count_since >= kMany && (steps > kLongestStart || last_finite || !finite_loss);
    case Quantity::nan_iterations: break;  // a line has those of all steps since the line before
  }
  return count_since >= kMany && 2 * count_since > steps;
}

std::optional<std::int64_t> TimelineFacts::nonfinite_since() const {
  std::optional<std::int64_t> earliest, since;
  for (const Nonfinite& found : nonfinite) {
    if (!found.first_applied || found.of == Quantity::evaluation_loss) continue;
    earliest = std::min(*found.first_applied, earliest.value_or(*found.first_applied));
    if (found.since) since = std::min(*found.since, since.value_or(*found.since));
  }
  return since ? since : earliest;
}

std::optional<std::int64_t> TimelineFacts::last_finite() const {
  std::optional<std::int64_t> last;
  for (const Nonfinite& found : nonfinite) {
    if (!found.lasts() || found.of == Quantity::nan_iterations) continue;
    if (!found.last_finite) return std::nullopt;
    last = std::min(*found.last_finite, last.value_or(*found.last_finite));
  }
  return last;
}

bool TimelineFacts::alarming() const {
  return in_vain.has_value() || ended_at_minimum || loss_missing_since || bad_loss_part ||
         std::ranges::any_of(nonfinite, [](const Nonfinite& f) { return f.at_skips < f.count; });
}

bool TimelineFacts::skips_at_static_scale() const {
  return in_vain && changes.empty() && scale_last.value_or(1) > 1 && !ended_at_minimum;
}

}  // namespace halfscope::analyzers::scale_history
