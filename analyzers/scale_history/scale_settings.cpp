// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/scale_settings.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

/// Growth that skips more than one step in so many is worth a longer window: what PyTorch (2000)
/// and DeepSpeed, Megatron-LM and MindSpore (1000) have.
constexpr std::uint64_t kUsualWindow = 1000;

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::int64_t end_of(const ScaleChange& change) { return change.by.value_or(change.after); }

/// The scale that held for the most steps; of several the smallest. While it changed unseen it was
/// the smaller one at least.
double settled(const TimelineFacts& facts) {
  std::map<double, std::int64_t> held;
  const auto add = [&](double scale, std::int64_t from, std::int64_t to) {
    held[scale] += std::max<std::int64_t>(0, to - from);
  };
  std::int64_t since = facts.first.value_or(facts.changes.front().after);
  for (const ScaleChange& change : facts.changes) {
    add(change.from, since, change.after);
    add(std::min(change.from, change.to), change.after, end_of(change));
    since = end_of(change);
  }
  add(facts.changes.back().to, since, facts.last.value_or(since));
  return std::ranges::max_element(held, {}, [](const auto& entry) { return entry.second; })->first;
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

/// A skipped step, or some of several, and the scale before.
struct Skips {
  std::int64_t first = 0, last = 0;
  double scale = 0;
};

std::vector<Skips> skips_of(const underflow::LogFindings& log, const TimelineFacts& facts) {
  std::vector<Skips> skips;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.found_inf.value_or(false) && scalars.loss_scale) {
      skips.push_back({scalars.step, scalars.step, *scalars.loss_scale});
    }
  }
  for (const frames::SkippedSteps& range : facts.ranges) {
    if (range.scale_from && range.last)
      skips.push_back({range.first, *range.last, *range.scale_from});
  }
  std::ranges::sort(skips, {}, &Skips::first);
  return skips;
}

/// The scale that a step is skipped at again had grown after the one before: the window is shorter
/// than the steps between, of any two.
std::optional<std::uint64_t> window_at_most(const underflow::LogFindings& log,
                                            const TimelineFacts& facts) {
  const std::vector<Skips> skips = skips_of(log, facts);
  std::optional<std::uint64_t> window;
  for (std::size_t i = 1; i < skips.size(); ++i) {
    const Skips &before = skips[i - 1], &again = skips[i];
    const std::int64_t steps = again.last - before.first - 1;
    if (again.scale < before.scale || steps < 1) continue;
    window = std::min(window.value_or(kNever), static_cast<std::uint64_t>(steps));
  }
  return window;
}

/// Whether the log tells no scale but those that steps were skipped at, each twice what holds
/// after.
bool tells_attempts_alone(const underflow::LogFindings& log, const TimelineFacts& facts) {
  if (facts.numbered || !facts.ranges.empty()) return false;
  return std::ranges::all_of(log.scalars, [](const log::StepScalars& scalars) {
    return !scalars.loss_scale || scalars.found_inf.value_or(false);
  });
}

std::optional<Interval> window_of(const underflow::LogFindings& log, const TimelineFacts& facts) {
  if (const auto seen = window_seen(facts.changes)) return Interval(*seen);
  const auto most = window_at_most(log, facts);
  return most ? std::optional(Interval(1, *most)) : std::nullopt;
}

}  // namespace

std::optional<ScaleSettings> scale_settings(const underflow::LogFindings& log,
                                            const TimelineFacts& facts) {
  const bool moved = !facts.changes.empty();
  if (!facts.scale_first || (!moved && facts.skipped_in_all.high == 0)) return std::nullopt;
  ScaleSettings found{moved ? settled(facts) : *facts.scale_first};
  if (tells_attempts_alone(log, facts)) found.init /= 2;
  if (!frames::usable_scale(found.init)) return std::nullopt;
  if (facts.numbered) return found;
  found.window = window_of(log, facts);
  const bool costs = facts.skipped_in_all.high > 0 || !facts.skips_told;
  if (costs && found.window && 2 * found.window->high <= kUsualWindow) found.longer = kUsualWindow;
  return found;
}

}  // namespace halfscope::analyzers::scale_history
