// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/scale_settings.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "analyzers/scale_history/timeline_facts.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

/// Growth that skips more than one step in so many is worth a longer window: what PyTorch (2000)
/// and DeepSpeed, Megatron-LM and MindSpore (1000) have.
constexpr std::uint64_t kUsualWindow = 1000;

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

/// Each doubling shows the window between two bounds, since the change before it. Skipped steps that
/// left the scale, as hysteresis has them, begin a window anew: the shortest counts.
std::optional<Interval> window_of(const std::vector<ScaleChange>& changes) {
  std::optional<Interval> window;
  for (std::size_t i = 1; i < changes.size(); ++i) {
    const ScaleChange &before = changes[i - 1], &rise = changes[i];
    if (rise.to != 2 * rise.from || !rise.by || !before.by) continue;
    const std::int64_t most = *rise.by - before.after - 1, least = rise.after + 1 - *before.by;
    if (most < 1) continue;
    const Interval seen(static_cast<std::uint64_t>(std::clamp<std::int64_t>(least, 1, most)),
                        static_cast<std::uint64_t>(most));
    if (!window || seen.high < window->low) window = seen;
    if (seen.low > window->high) continue;
    window = Interval(std::max(window->low, seen.low), std::min(window->high, seen.high));
  }
  return window;
}

}  // namespace

std::optional<ScaleSettings> scale_settings(const TimelineFacts& facts) {
  const bool moved = !facts.changes.empty();
  if (!facts.scale_first || (!moved && facts.skipped_in_all.high == 0)) return std::nullopt;
  ScaleSettings found{moved ? settled(facts) : *facts.scale_first};
  if (!frames::usable_scale(found.init)) return std::nullopt;
  if (facts.numbered) return found;
  found.window = window_of(facts.changes);
  const bool costs = facts.skipped_in_all.high > 0 || !facts.skips_told;
  if (costs && found.window && 2 * found.window->high <= kUsualWindow) found.longer = kUsualWindow;
  return found;
}

}  // namespace halfscope::analyzers::scale_history
