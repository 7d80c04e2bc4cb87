// SPDX-License-Identifier: Apache-2.0
// The state of a run: NaN and infinities in its scalars, steps skipped in vain,
// and what follows.
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
/// The most steps that a start may cost: from 2^32 to 1 by halves, each after
/// two overflows.
constexpr std::uint64_t kLongestStart = 64;

/// Returns true if the step, or some of those that its line covers, was
/// skipped. If the scale alone shows skipped steps, it fell there.
bool was_skipped(const TimelineFacts& facts, std::int64_t step) {
  if (facts.skips_told) {
    if (std::ranges::binary_search(facts.skipped, step)) return true;
    const auto after = std::ranges::upper_bound(facts.ranges, step, {}, &SkippedSteps::first);
    return after != facts.ranges.begin() && step <= std::prev(after)->last.value_or(step);
  }
  auto change = std::ranges::upper_bound(facts.changes, step, {}, &ScaleChange::after);
  while (change != facts.changes.begin()) {  // one change ends where the next one begins
    --change;
    if (change->by.value_or(step) < step) return false;
    if (is_fall(*change)) return true;
  }
  return false;
}

/// The number of NaN or infinite values of a quantity at a step. Empty: the
/// step has no value.
std::optional<std::uint64_t> nonfinite_at(const log::StepScalars& scalars, Quantity of) {
  constexpr std::string_view kTags[] = {"", frames::kGradientNorm, frames::kNanIterations,
                                        frames::kEvaluationLoss};  // by Quantity
  std::optional<double> value = scalars.loss;
  if (of != Quantity::loss) {
    const auto found = scalars.more.find(std::string(kTags[static_cast<std::size_t>(of)]));
    value = found == scalars.more.end() ? std::nullopt : std::optional(found->second);
  }
  if (of != Quantity::nan_iterations)
    return value ? std::optional<std::uint64_t>(!std::isfinite(*value)) : std::nullopt;
  if (!value) return scalars.loss || scalars.learning_rate ? std::optional(0) : std::nullopt;
  // A run log may have any number.
  return *value >= 0 && *value < 0x1p63 ? static_cast<std::uint64_t>(*value) : 0;
}

void add_finite(std::int64_t step, Nonfinite& found) {
  if (found.since) found.last_before = found.last_since;
  found.since.reset();
  found.count_since = 0;
  found.last_finite = step;
  found.finite_loss = false;
}

/// A scaler skips a step for its gradients. A loss that is NaN comes from the
/// model.
void add_nonfinite(std::int64_t step, std::uint64_t count, bool skipped, Nonfinite& found) {
  constexpr std::size_t kFewNamed = 3;  // steps, as answers name them one by one
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

Nonfinite nonfinite_of(const LogFindings& log, Quantity of, const TimelineFacts& facts) {
  Nonfinite found{of};
  std::uint64_t values = 0;
  for (const log::StepScalars& scalars : log.scalars) {
    const auto count = nonfinite_at(scalars, of);
    // Hugging Face's Trainer prints 0 for losses that are NaN.
    const bool finite_loss = std::isnormal(scalars.loss.value_or(0));
    values += count ? 1 : 0;
    if (count == 0) add_finite(scalars.step, found);
    if (count.value_or(0) > 0) {
      const bool skipped = of == Quantity::gradient_norm && was_skipped(facts, scalars.step);
      add_nonfinite(scalars.step, *count, skipped, found);
    }
    if (count) found.finite_loss |= found.since && finite_loss;
    // Some logs have norms from the first one on that was not finite.
    if (!count && finite_loss && found.count == 0) found.last_finite = scalars.step;
  }
  // If a log has a loss scale and no skipped steps, few norms that finite ones
  // follow are of these.
  const bool scaled = !facts.skips_told && facts.scale_most.value_or(1) > 1;
  const bool by_scaler = scaled && of == Quantity::gradient_norm && !found.since;
  if (by_scaler && !more_than_few(found.count, values)) {
    found.at_skips = found.count;
    found.first_applied.reset();
  }
  return found;
}

/// Returns true if the log says how many steps there were, not only which of
/// them were skipped.
bool has_steps(const LogFindings& log) {
  return std::ranges::any_of(log.scalars, [](const log::StepScalars& s) {
    const bool of_skip = s.found_inf.value_or(false) || s.loss_scale;
    return s.loss || s.learning_rate || s.found_inf == false || !of_skip;
  });
}

struct StepRange {
  std::int64_t first = 0, last = 0;

  std::uint64_t count() const { return static_cast<std::uint64_t>(last - first) + 1; }
};

/// The first and last step of the log.
std::optional<StepRange> steps_of(const TimelineFacts& facts) {
  if (facts.numbered) return std::nullopt;
  std::optional<std::int64_t> low = facts.first, high = facts.last;
  for (const SkippedSteps& range : facts.ranges) {
    const auto open_end = range.first + static_cast<std::int64_t>(range.count.high) - 1;
    low = std::min(range.first, low.value_or(range.first));
    high = std::max(range.last.value_or(open_end), high.value_or(range.first));
  }
  if (!low) return std::nullopt;
  return StepRange{std::min(*low, facts.counted_from.value_or(*low)), *high};
}

/// The last steps that were all skipped, perhaps none.
StepRange tail_of_skips(const TimelineFacts& facts, std::int64_t last) {
  std::int64_t from = last + 1;
  for (const SkippedSteps& range : facts.skips | std::views::reverse) {
    if (range.first >= from) continue;
    if (range.last.value_or(last) != from - 1 || !all_skipped(range, last)) break;
    from = range.first;
  }
  return {from, last};
}

/// Returns true if skipped steps do not lower the scale any more. Without a
/// scale, if updates stand still, or more steps are skipped than a start costs.
bool at_the_bottom(const TimelineFacts& facts) {
  if (!facts.scale_last) return facts.skips_at_least || facts.skipped_in_all.low > kLongestStart;
  if (*facts.scale_last <= 1 || facts.ended_at_minimum) return true;
  const auto falls = static_cast<std::uint64_t>(std::ranges::count_if(facts.changes, is_fall));
  const auto halvings =
      static_cast<std::uint64_t>(halvings_between(*facts.scale_most, *facts.scale_last));
  return *facts.scale_last == facts.scale_least &&
         facts.skipped_in_all.low >= kLeastInVain + std::max(falls, halvings);
}

void set_in_vain(TimelineFacts& facts, const StepRange& steps) {
  const std::int64_t ten_before = steps.last - static_cast<std::int64_t>(kLeastInVain);
  const bool ends_clean = facts.attempts && ten_before >= last_skipped(facts).value_or(0);
  if (!at_the_bottom(facts) || ends_clean) return;
  const auto are_most = [](std::uint64_t skipped, const StepRange& of) {
    return skipped >= kLeastInVain && 2 * skipped >= of.count();
  };
  const StepRange tail = tail_of_skips(facts, steps.last);
  const StepRange at_one{facts.first_at_one.value_or(steps.first), steps.last};
  if (tail.last - tail.first + 1 >= static_cast<std::int64_t>(kLeastInVain)) {
    const bool open = !facts.ranges.empty() && !facts.ranges.back().last &&
                      tail.first >= facts.ranges.back().first;
    facts.in_vain = {tail.first, open ? std::nullopt : std::optional(tail.last), tail.count()};
  } else if (facts.attempts && !facts.slow_start && are_most(facts.skipped_in_all.low, steps)) {
    facts.in_vain = {steps.first, steps.last, facts.skipped_in_all};
  } else if (facts.attempts && are_most(facts.skipped_at_one, at_one)) {
    facts.in_vain = {at_one.first, at_one.last, facts.skipped_at_one};
  }
}

/// The number of times that the scale grew between skipped steps of a log
/// without steps: it came back to the same or more, above its floor.
std::uint64_t growths_between(const TimelineFacts& facts) {
  std::uint64_t growths = 0;
  for (std::size_t i = 1; i < facts.scales.size(); ++i) {
    const double scale = facts.scales[i].scale;
    growths += scale >= facts.scales[i - 1].scale && !may_be_floor(scale, facts) ? 1 : 0;
  }
  return growths;
}

/// As many skipped steps within kWindow steps as lower the scale to a
/// thousandth.
std::optional<SkippedSteps> burst_of(const TimelineFacts& facts) {
  constexpr std::int64_t kWindow = 50;
  constexpr std::size_t kLeast = 10;
  const std::vector<std::int64_t>& skipped = facts.skipped;
  const std::int64_t start = facts.slow_start ? *facts.slow_start->last : facts.first_attempt - 1;
  for (auto from = std::ranges::upper_bound(skipped, start); from != skipped.end(); ++from) {
    const auto end = std::ranges::lower_bound(from, skipped.end(), *from + kWindow);
    const auto count = static_cast<std::size_t>(end - from);
    if (count >= kLeast) return SkippedSteps{*from, *std::prev(end), count};
  }
  return std::nullopt;
}

RunState state_of(const TimelineFacts& facts) {
  const bool lasts = std::ranges::any_of(facts.nonfinite, &Nonfinite::lasts);
  if (facts.in_vain || facts.ended_at_minimum || lasts) return RunState::broken;
  if (facts.collapse() != nullptr || facts.below_one()) return RunState::collapsed;
  if (!facts.scale_first && !facts.skips_told) return RunState::unknown;
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
  for (const Quantity of : {Quantity::loss, Quantity::gradient_norm, Quantity::nan_iterations,
                            Quantity::evaluation_loss}) {
    Nonfinite found = nonfinite_of(log, of, facts);
    if (found.count > 0) facts.nonfinite.push_back(std::move(found));
  }
  const auto steps = steps_of(facts);
  if (steps) facts.steps_at_least = steps->count();
  if (steps && has_steps(log)) {
    facts.first_attempt = steps->first;
    facts.last_attempt = steps->last;
    facts.attempts = steps->count();
  }
  if (facts.numbered) facts.steps_at_least = kLeastWindow * growths_between(facts);
  if (!facts.skips_told) set_halvings(facts);
  set_slow_start(log, facts, steps ? std::optional(steps->first) : std::nullopt);
  if (steps) set_in_vain(facts, *steps);
  if (!facts.scale_first && !facts.numbered) facts.burst = burst_of(facts);
  set_settings(log, facts);
  set_jump(facts);
  facts.state = state_of(facts);
}

bool Nonfinite::lasts() const {
  if (!since || of == Quantity::evaluation_loss) return false;
  if (of == Quantity::loss) return true;  // it comes from the model
  const auto steps = static_cast<std::uint64_t>(last_since - *since);
  // A line has the NaN iterations of all steps since the line before.
  if (of == Quantity::nan_iterations) return count_since >= kMany && 2 * count_since > steps;
  // A start has finite losses, and is short.
  return count_since >= kMany && (steps > kLongestStart || last_finite || !finite_loss);
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

bool TimelineFacts::all_in_vain() const { return in_vain && all_skipped(*in_vain, last_attempt); }

bool TimelineFacts::skips_at_static_scale() const {
  return in_vain && changes.empty() && scale_last.value_or(1) > 1 && !ended_at_minimum;
}

}  // namespace halfscope::analyzers::scale_history
