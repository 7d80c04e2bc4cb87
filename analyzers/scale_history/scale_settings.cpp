// SPDX-License-Identifier: Apache-2.0
// Settings of a dynamic loss scale that a run's own scale supports.
#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::int64_t end_of(const ScaleChange& change) { return change.by.value_or(change.after); }

/// Whether the log tells no scale but those that steps were skipped at, each twice what holds
/// after.
bool tells_attempts_alone(const underflow::LogFindings& log, const TimelineFacts& facts) {
  if (facts.numbered || !facts.ranges.empty()) return false;
  return std::ranges::all_of(log.scalars, [](const log::StepScalars& scalars) {
    return !scalars.loss_scale || scalars.found_inf.value_or(false);
  });
}

/// The skipped steps, or some of several, of which the scale before is told.
std::vector<frames::SkippedSteps> skips_of(const underflow::LogFindings& log,
                                           const TimelineFacts& facts) {
  std::vector<frames::SkippedSteps> skips = facts.skips;
  std::erase_if(skips, [](const auto& skip) { return !skip.scale_from || !skip.last; });
  if (!tells_attempts_alone(log, facts)) return skips;
  for (auto& skip : skips) {
    skip.scale_to = *skip.scale_from / (may_be_floor(*skip.scale_from, facts) ? 1 : 2);
  }
  return skips;
}

/// Steps that were applied, by their scale, as far as the log tells it.
using Held = std::map<double, std::int64_t>;

/// Of entries without a step, each the scale after a skipped one: it held if the next is not lower.
Held held_by_entries(const std::vector<ToldScale>& told) {
  Held held;
  for (std::size_t i = 1; i < told.size(); ++i) {
    if (told[i].scale >= told[i - 1].scale) ++held[told[i - 1].scale];
  }
  return held;
}

Held held_by_attempts(const std::vector<frames::SkippedSteps>& skips) {
  Held held;
  for (std::size_t i = 1; i < skips.size(); ++i) {
    const std::int64_t steps = skips[i].first - *skips[i - 1].last - 1;
    if (steps > 0) held[*skips[i - 1].scale_to] += steps;
  }
  return held;
}

/// The first step of which a scale is told; beyond all where none is.
std::int64_t first_told(const underflow::LogFindings& log, const TimelineFacts& facts) {
  const std::vector<ToldScale> told = told_scales(log);
  std::int64_t first = told.empty() ? std::int64_t{1} << 62 : told.front().step;
  for (const frames::SkippedSteps& range : facts.ranges) {
    if (range.scale_from || range.scale_to) first = std::min(first, range.first);
  }
  return first;
}

/// Skipped steps of [from, to), at the most.
std::int64_t skipped_within(const TimelineFacts& facts, std::int64_t from, std::int64_t to) {
  std::int64_t count = 0;
  for (const frames::SkippedSteps& range : facts.skips) {
    const bool within = from <= range.first && range.first < to;
    count += within ? static_cast<std::int64_t>(range.count.high) : 0;
  }
  return count;
}

/// While the scale changed unseen it was the smaller one at least.
Held held_by_steps(const underflow::LogFindings& log, const TimelineFacts& facts) {
  Held held;
  const auto add = [&](double scale, std::int64_t from, std::int64_t to, std::int64_t least) {
    if (to <= from) return;
    const std::int64_t lost = std::max(least, skipped_within(facts, from, to));
    if (to - from > lost) held[scale] += to - from - lost;
  };
  std::int64_t since = first_told(log, facts);
  for (std::size_t i = 0; i < facts.changes.size(); ++i) {
    const ScaleChange& change = facts.changes[i];
    add(change.from, since, change.after, 0);
    since = end_of(change);
    const bool goes_on = i + 1 < facts.changes.size() && facts.changes[i + 1].after < since;
    if (!goes_on) add(std::min(change.from, change.to), change.after, since, 1);
  }
  if (!facts.grew_unseen) add(*facts.scale_last, since, facts.last.value_or(since) + 1, 0);
  return held;
}

/// The scale that most steps were applied at; of several the smallest. Empty where none was tried
/// and held, or where it grew and met no limit: it may go on to grow.
std::optional<double> settled(const underflow::LogFindings& log, const TimelineFacts& facts) {
  const bool attempts = tells_attempts_alone(log, facts);
  const Held held = facts.numbered ? held_by_entries(told_scales(log))
                    : attempts     ? held_by_attempts(skips_of(log, facts))
                                   : held_by_steps(log, facts);
  if (held.empty()) return std::nullopt;
  const auto most = std::ranges::max_element(held, {}, &Held::value_type::second);
  const bool fell = std::ranges::any_of(facts.changes, is_fall);
  const bool grew = !facts.changes.empty() && !fell && facts.skipped_in_all.high == 0;
  const auto longer = [&](const auto& entry) { return 2 * entry.second >= most->second; };
  const bool stopped = most->first == facts.scale_last && std::ranges::count_if(held, longer) == 1;
  return grew && !stopped ? std::nullopt : std::optional(most->first);
}

/// Of a log that tells each step: the steps from the change before to a doubling. Skipped steps
/// that left the scale, as hysteresis has them, begin a window anew: the shortest counts.
std::optional<std::uint64_t> window_seen(const std::vector<ScaleChange>& changes) {
  const auto at_once = [](const ScaleChange& change) { return change.by == change.after + 1; };
  std::optional<std::uint64_t> window;
  for (std::size_t i = 1; i < changes.size(); ++i) {
    const ScaleChange &before = changes[i - 1], &rise = changes[i];
    if (rise.to != 2 * rise.from || !at_once(rise) || !at_once(before)) continue;
    const auto steps = static_cast<std::uint64_t>(rise.after - before.after);
    window = std::min(window.value_or(steps), steps);
  }
  return window;
}

/// A step is skipped at twice the scale that the skipped one before left: it had grown once, and
/// the window is shorter than the steps between, of any two. What rises further began anew.
std::optional<std::uint64_t> longest_window(const std::vector<frames::SkippedSteps>& skips) {
  std::optional<std::uint64_t> window;
  for (std::size_t i = 1; i < skips.size(); ++i) {
    const auto &before = skips[i - 1], &again = skips[i];
    const std::int64_t steps = *again.last - before.first - 1;
    if (!before.scale_to || *again.scale_from != 2 * *before.scale_to || steps < 1) continue;
    window = std::min(window.value_or(kNever), static_cast<std::uint64_t>(steps));
  }
  return window;
}

/// As lines tell it; else 2 where a skipped step left the scale as it was.
std::int64_t hysteresis_of(const underflow::LogFindings& log, const TimelineFacts& facts) {
  std::int64_t told = 1;
  for (const frames::LogKind& kind : log.kinds) told = std::max(told, kind.hysteresis.value_or(1));
  const bool stayed = std::ranges::any_of(skips_of(log, facts), [&](const auto& skip) {
    return skip.scale_to == skip.scale_from && !may_be_floor(*skip.scale_from, facts);
  });
  return std::max<std::int64_t>(told, stayed ? 2 : 1);
}

}  // namespace

std::optional<Interval> growth_window(const underflow::LogFindings& log,
                                      const TimelineFacts& facts) {
  if (const auto seen = window_seen(facts.changes)) return Interval(*seen);
  const auto most = longest_window(skips_of(log, facts));
  return most ? std::optional(Interval(1, *most)) : std::nullopt;
}

void set_settings(const underflow::LogFindings& log, TimelineFacts& facts) {
  const bool any_skipped = facts.skipped_in_all.high > 0;
  if (!facts.scale_first || (facts.changes.empty() && !any_skipped)) return;
  const auto init = settled(log, facts);
  if (!init || !frames::usable_scale(*init)) return;
  ScaleSettings found{*init};
  if (!facts.numbered) {
    found.window = growth_window(log, facts);
    found.hysteresis = hysteresis_of(log, facts);
    // Growth that skips more than one step in kUsualWindow is worth a longer window.
    const bool costs = any_skipped || !facts.skips_told;
    if (costs && found.window && 2 * found.window->high <= kUsualWindow) {
      found.longer = kUsualWindow;
    }
  }
  facts.settings = found;
}

}  // namespace halfscope::analyzers::scale_history
