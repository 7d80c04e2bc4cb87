// SPDX-License-Identifier: Apache-2.0
#include "analyzers/timeline_state.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace halfscope::analyzers {
namespace {

constexpr std::uint64_t kLeastInVain = 10;  // a scale that starts high needs some skipped steps
constexpr double kMost = 0.5;               // of the steps
constexpr std::uint64_t kLeastAtStart = 3;

/// Whether the step, or some of those that it is printed for, was skipped.
bool was_skipped(const TimelineFacts& facts, std::int64_t step) {
  if (std::ranges::binary_search(facts.skipped, step)) return true;
  const auto after = std::ranges::upper_bound(facts.ranges, step, {}, &SkippedSteps::first);
  return after != facts.ranges.begin() && step <= std::prev(after)->last.value_or(step);
}

/// How many iterations of a step's scalars were NaN or infinite in a quantity.
std::uint64_t nonfinite_at(const log::StepScalars& scalars, Quantity of) {
  const auto more = [&](std::string_view tag) -> std::optional<double> {
    const auto found = scalars.more.find(std::string(tag));
    return found == scalars.more.end() ? std::nullopt : std::optional(found->second);
  };
  switch (of) {
    case Quantity::loss: return scalars.loss && !std::isfinite(*scalars.loss) ? 1 : 0;
    case Quantity::gradient_norm: {
      const auto norm = more(kGradientNorm);
      return norm && !std::isfinite(*norm) ? 1 : 0;
    }
    case Quantity::nan_iterations: break;
  }
  return static_cast<std::uint64_t>(more(kNanIterations).value_or(0));
}

void set_nonfinite(const Analysis& analysis, TimelineFacts& facts) {
  for (const Quantity of : {Quantity::loss, Quantity::gradient_norm, Quantity::nan_iterations}) {
    Nonfinite found{of};
    for (const auto& [log, scalars] : analysis.scalars) {
      const std::uint64_t count = log == facts.log ? nonfinite_at(scalars, of) : 0;
      if (count == 0) continue;
      if (found.count == 0) found.first = scalars.step;
      found.last = scalars.step;
      found.count += count;
      // A scaler skips a step for its gradients; a loss that is NaN is the model's.
      if (of == Quantity::gradient_norm && was_skipped(facts, scalars.step)) ++found.at_skips;
    }
    if (found.count > 0) facts.nonfinite.push_back(found);
  }
}

/// Whether the log tells of steps otherwise than by what was skipped: how many there were.
bool tells_steps(const Analysis& analysis, const TimelineFacts& facts) {
  return std::ranges::any_of(analysis.scalars, [&](const auto& entry) {
    const log::StepScalars& s = entry.second;
    const bool of_skip = s.found_inf.value_or(false) || s.loss_scale;
    return entry.first == facts.log &&
           (s.loss || s.learning_rate || s.found_inf == false || !of_skip);
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
  const double halvings = std::log2(*facts.scale_most / *facts.scale_last);
  return *facts.scale_last == facts.scale_least &&
         facts.skipped_in_all.low >= kLeastInVain + falls + static_cast<std::uint64_t>(halvings);
}

void set_in_vain(TimelineFacts& facts, const Steps& steps) {
  if (!at_the_bottom(facts)) return;
  const std::int64_t from = tail_of_skips(facts, steps.last);
  const auto tail = static_cast<std::uint64_t>(steps.last - from + 1);
  if (tail >= kLeastInVain) {
    facts.in_vain = SkippedInVain{from, steps.last, tail, true};
  } else if (facts.attempts && facts.skipped_in_all.low >= kLeastInVain &&
             static_cast<double>(facts.skipped_in_all.low) >=
                 kMost * static_cast<double>(*facts.attempts)) {
    facts.in_vain = SkippedInVain{steps.first, steps.last, facts.skipped_in_all,
                                  facts.skipped_in_all.low == *facts.attempts};
  }
}

/// Whether NaN or infinities last to the end, as far as scalars tell.
bool lasts(const Analysis& analysis, const TimelineFacts& facts) {
  for (const Nonfinite& found : facts.nonfinite) {
    if (found.at_skips == found.count) continue;
    std::int64_t last = found.last;
    for (const auto& [log, scalars] : analysis.scalars) {
      const bool has = found.of == Quantity::loss ? scalars.loss.has_value()
                                                  : scalars.loss || scalars.learning_rate;
      if (log == facts.log && has) last = std::max(last, scalars.step);
    }
    if (last == found.last) return true;
  }
  return false;
}

/// Whether most skipped steps are the first ones.
bool starts_slowly(const TimelineFacts& facts, std::int64_t first) {
  std::uint64_t count = 0;
  while (count < facts.skipped.size() &&
         facts.skipped[count] == first + static_cast<std::int64_t>(count)) {
    ++count;
  }
  for (const SkippedSteps& range : facts.ranges) {
    const bool falls = range.scale_to < range.scale_from;
    if (range.first == first && falls) count = std::max(count, range.count.low);
  }
  return count >= kLeastAtStart && 2 * count >= facts.skipped_in_all.high;
}

}  // namespace

void set_state(const Analysis& analysis, TimelineFacts& facts) {
  set_nonfinite(analysis, facts);
  const auto steps = steps_of(facts);
  if (steps && tells_steps(analysis, facts)) {
    facts.attempts = static_cast<std::uint64_t>(steps->last - steps->first) + 1;
  }
  if (steps) set_in_vain(facts, *steps);
  const bool told = facts.scale_first || facts.skipped_in_all.high > 0;
  if (facts.in_vain || facts.ended_at_minimum || lasts(analysis, facts)) {
    facts.state = RunState::broken;
  } else if (collapse_of(facts) != nullptr) {
    facts.state = RunState::collapsed;
  } else if (told && facts.skipped_in_all.high == 0 && facts.scale_least == 1 &&
             facts.scale_most == 1) {
    facts.state = RunState::not_needed;
  } else if (told) {
    facts.state =
        steps && starts_slowly(facts, steps->first) ? RunState::slow_start : RunState::normal;
  }
}

std::optional<std::int64_t> TimelineFacts::nonfinite_since() const {
  std::optional<std::int64_t> since;
  for (const Nonfinite& found : nonfinite) {
    if (found.at_skips == found.count) continue;
    since = std::min(found.first, since.value_or(found.first));
  }
  return since;
}

bool TimelineFacts::alarming() const {
  return nonfinite_since().has_value() || in_vain.has_value() || ended_at_minimum;
}

}  // namespace halfscope::analyzers
