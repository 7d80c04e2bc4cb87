// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/scale_settings.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include "analyzers/scale_history/scale_rules.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::int64_t end_of(const ScaleChange& change) { return change.by.value_or(change.after); }

/// A skipped step, or some of several, and the scales before and after.
struct Skips {
  std::int64_t first = 0, last = 0;
  double scale = 0;
  std::optional<double> after = {};
};

/// Whether the log tells no scale but those that steps were skipped at, each twice what holds
/// after.
bool tells_attempts_alone(const underflow::LogFindings& log, const TimelineFacts& facts) {
  if (facts.numbered || !facts.ranges.empty()) return false;
  return std::ranges::all_of(log.scalars, [](const log::StepScalars& scalars) {
    return !scalars.loss_scale || scalars.found_inf.value_or(false);
  });
}

std::vector<Skips> skips_of(const underflow::LogFindings& log, const TimelineFacts& facts) {
  const bool attempts = tells_attempts_alone(log, facts);
  std::vector<Skips> skips;
  for (auto at = log.scalars.begin(); at != log.scalars.end(); ++at) {
    if (!at->found_inf.value_or(false) || !at->loss_scale) continue;
    Skips skip{at->step, at->step, *at->loss_scale};
    const auto next = std::next(at);
    if (next != log.scalars.end() && next->step == at->step + 1) skip.after = next->loss_scale;
    if (attempts) skip.after = skip.scale / (may_be_floor(skip.scale, facts) ? 1 : 2);
    skips.push_back(skip);
  }
  for (const frames::SkippedSteps& range : facts.ranges) {
    if (range.scale_from && range.last)
      skips.push_back({range.first, *range.last, *range.scale_from, range.scale_to});
  }
  std::ranges::sort(skips, {}, &Skips::first);
  return skips;
}

/// Steps that were applied, by their scale, as far as the log tells it.
using Held = std::map<double, std::int64_t>;

/// Of entries without a step, each the scale after a skipped one: it held if the next is not lower.
Held held_by_entries(const underflow::LogFindings& log) {
  Held held;
  std::optional<double> before;
  for (const log::StepScalars& scalars : log.scalars) {
    if (!scalars.loss_scale) continue;
    if (before && *scalars.loss_scale >= *before) ++held[*before];
    before = scalars.loss_scale;
  }
  return held;
}

Held held_by_attempts(const std::vector<Skips>& skips) {
  Held held;
  for (std::size_t i = 1; i < skips.size(); ++i) {
    const std::int64_t steps = skips[i].first - skips[i - 1].last - 1;
    if (steps > 0 && skips[i - 1].after) held[*skips[i - 1].after] += steps;
  }
  return held;
}

/// The first step of which a scale is told; beyond all where none is.
std::int64_t first_told(const underflow::LogFindings& log, const TimelineFacts& facts) {
  std::int64_t first = std::int64_t{1} << 62;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss_scale) first = std::min(first, scalars.step);
  }
  for (const frames::SkippedSteps& range : facts.ranges) {
    if (range.scale_from || range.scale_to) first = std::min(first, range.first);
  }
  return first;
}

/// Skipped steps of [from, to), at the most.
std::int64_t skipped_within(const TimelineFacts& facts, std::int64_t from, std::int64_t to) {
  const auto within = [&](std::int64_t step) { return from <= step && step < to; };
  std::int64_t count = std::ranges::count_if(facts.skipped, within);
  for (const frames::SkippedSteps& range : facts.ranges) {
    if (within(range.first)) count += static_cast<std::int64_t>(range.count.high);
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
  const Held held = facts.numbered ? held_by_entries(log)
                    : attempts     ? held_by_attempts(skips_of(log, facts))
                                   : held_by_steps(log, facts);
  if (held.empty()) return std::nullopt;
  const auto steps = [](const auto& entry) { return entry.second; };
  const auto most = std::ranges::max_element(held, {}, steps);
  const bool fell = std::ranges::any_of(
      facts.changes, [](const ScaleChange& change) { return change.to < change.from; });
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
std::optional<std::uint64_t> window_at_most(const std::vector<Skips>& skips) {
  std::optional<std::uint64_t> window;
  for (std::size_t i = 1; i < skips.size(); ++i) {
    const Skips &before = skips[i - 1], &again = skips[i];
    const std::int64_t steps = again.last - before.first - 1;
    if (!before.after || again.scale != 2 * *before.after || steps < 1) continue;
    window = std::min(window.value_or(kNever), static_cast<std::uint64_t>(steps));
  }
  return window;
}

/// As lines tell it; else 2 where a skipped step left the scale as it was.
std::int64_t hysteresis_of(const underflow::LogFindings& log, const std::vector<Skips>& skips,
                           const TimelineFacts& facts) {
  std::optional<std::int64_t> told;
  for (const frames::LogKind& kind : log.kinds) told = std::max(told, kind.hysteresis);
  const bool stayed = std::ranges::any_of(skips, [&](const Skips& skip) {
    return skip.after == skip.scale && !may_be_floor(skip.scale, facts);
  });
  return std::max<std::int64_t>(told.value_or(1), stayed ? 2 : 1);
}

}  // namespace

std::optional<Interval> growth_window(const underflow::LogFindings& log,
                                      const TimelineFacts& facts) {
  if (const auto seen = window_seen(facts.changes)) return Interval(*seen);
  const auto most = window_at_most(skips_of(log, facts));
  return most ? std::optional(Interval(1, *most)) : std::nullopt;
}

std::optional<ScaleSettings> scale_settings(const underflow::LogFindings& log,
                                            const TimelineFacts& facts) {
  const bool moved = !facts.changes.empty();
  if (!facts.scale_first || (!moved && facts.skipped_in_all.high == 0)) return std::nullopt;
  const auto init = settled(log, facts);
  if (!init || !frames::usable_scale(*init)) return std::nullopt;
  ScaleSettings found{*init};
  if (facts.numbered) return found;
  const std::vector<Skips> skips = skips_of(log, facts);
  found.window = growth_window(log, facts);
  found.hysteresis = hysteresis_of(log, skips, facts);
  // Growth that skips more than one step in kUsualWindow is worth a longer window.
  const bool costs = facts.skipped_in_all.high > 0 || !facts.skips_told;
  if (costs && found.window && 2 * found.window->high <= kUsualWindow) found.longer = kUsualWindow;
  return found;
}

}  // namespace halfscope::analyzers::scale_history
