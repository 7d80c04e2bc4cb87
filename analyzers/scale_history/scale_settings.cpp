// SPDX-License-Identifier: Apache-2.0
// Settings of a dynamic loss scale that a run's own scale supports.
#include <algorithm>
#include <map>
#include <vector>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {

using frames::SkippedSteps;

namespace {

/// Returns true if the log has no scales but those that steps were skipped at,
/// each twice the next.
bool has_attempts_alone(const TimelineFacts& facts) {
  return !facts.numbered && facts.ranges.empty() &&
         std::ranges::includes(facts.skipped, facts.scales, {}, {}, &ScaleAtStep::step);
}

/// The skipped steps whose scale is known, before them and, if the log has
/// attempts alone, after.
std::vector<SkippedSteps> skips_of(const TimelineFacts& facts) {
  std::vector<SkippedSteps> skips = facts.skips;
  std::erase_if(skips, [](const auto& skip) { return !skip.scale_from || !skip.last; });
  if (!has_attempts_alone(facts)) return skips;
  for (SkippedSteps& skip : skips) {
    skip.scale_to = *skip.scale_from / (may_be_floor(*skip.scale_from, facts) ? 1 : 2);
  }
  return skips;
}

/// The number of applied steps by their scale, as far as the log shows it.
class Held {
 public:
  explicit Held(const TimelineFacts& facts) : facts_(facts) {
    if (facts.numbered) {
      add_entries();
    } else if (has_attempts_alone(facts)) {
      add_attempts();
    } else {
      add_changes();
    }
  }
  std::map<double, std::int64_t> steps;

 private:
  void add(double scale, std::int64_t count) {
    if (count > 0) steps[scale] += count;
  }

  /// An entry has the scale after a skipped step: it held if the next one is
  /// not lower.
  void add_entries() {
    for (std::size_t i = 1; i < facts_.scales.size(); ++i) {
      const double scale = facts_.scales[i - 1].scale;
      add(scale, facts_.scales[i].scale >= scale ? 1 : 0);
    }
  }

  void add_attempts() {
    const std::vector<SkippedSteps> skips = skips_of(facts_);
    for (std::size_t i = 1; i < skips.size(); ++i) {
      add(*skips[i - 1].scale_to, skips[i].first - *skips[i - 1].last - 1);
    }
  }

  /// Adds the steps of [from, to) without those that may have been skipped:
  /// `least` or more.
  void add_range(double scale, std::int64_t from, std::int64_t to, std::int64_t least) {
    std::int64_t skipped = 0;
    for (const SkippedSteps& range : facts_.skips) {
      const bool within = from <= range.first && range.first < to;
      skipped += within ? static_cast<std::int64_t>(range.count.high) : 0;
    }
    add(scale, to - from - std::max(least, skipped));
  }

  /// While the scale changed unseen it was the smaller one at least.
  void add_changes() {
    std::int64_t since = facts_.scales.empty() ? kAfterAll : facts_.scales.front().step;
    for (const SkippedSteps& range : facts_.ranges) {
      if (range.scale_from || range.scale_to) since = std::min(since, range.first);
    }
    for (std::size_t i = 0; i < facts_.changes.size(); ++i) {
      const ScaleChange& change = facts_.changes[i];
      add_range(change.from, since, change.after, 0);
      since = change.by.value_or(change.after);
      const bool goes_on = i + 1 < facts_.changes.size() && facts_.changes[i + 1].after < since;
      if (!goes_on) add_range(std::min(change.from, change.to), change.after, since, 1);
    }
    const std::int64_t end = facts_.last.value_or(since - 1) + 1;
    if (!facts_.grew_unseen) add_range(*facts_.scale_last, since, end, 0);
  }

  const TimelineFacts& facts_;
};

/// The scale that most steps were applied at; of several the smallest. Empty if
/// none was tried and held, or if it grew and met no limit: it may go on to
/// grow.
std::optional<double> settled(const TimelineFacts& facts) {
  const auto held = Held(facts).steps;
  if (held.empty()) return std::nullopt;
  const auto [scale, steps] = *std::ranges::max_element(held, {}, [](auto& h) { return h.second; });
  const bool grew = !facts.changes.empty() && std::ranges::none_of(facts.changes, is_fall) &&
                    facts.skipped_in_all.high == 0;
  const auto long_too = [&](const auto& entry) { return 2 * entry.second >= steps; };
  const bool stopped = scale == facts.scale_last && std::ranges::count_if(held, long_too) == 1;
  return grew && !stopped ? std::nullopt : std::optional(scale);
}

void shorten(std::optional<std::uint64_t>& window, std::int64_t steps) {
  const auto count = static_cast<std::uint64_t>(steps);
  window = std::min(window.value_or(count), count);
}

/// As lines say, or 2 if a skipped step left the scale unchanged.
std::int64_t hysteresis_of(const underflow::LogFindings& log, const TimelineFacts& facts) {
  const bool stayed = std::ranges::any_of(skips_of(facts), [&](const SkippedSteps& skip) {
    return skip.scale_to == skip.scale_from && !may_be_floor(*skip.scale_from, facts);
  });
  std::int64_t most = stayed ? 2 : 1;
  for (const frames::LogKind& kind : log.kinds) most = std::max(most, kind.hysteresis.value_or(1));
  return most;
}

}  // namespace

std::optional<Interval> growth_window(const TimelineFacts& facts) {
  // In a log with each step: the steps from a change to a doubling. A skipped
  // step that leaves the scale, as hysteresis has it, begins the window anew,
  // so the shortest counts.
  std::optional<std::uint64_t> seen, most;
  const auto at_once = [](const ScaleChange& change) { return change.by == change.after + 1; };
  for (std::size_t i = 1; i < facts.changes.size(); ++i) {
    const ScaleChange &before = facts.changes[i - 1], &rise = facts.changes[i];
    const bool doubled = rise.to == 2 * rise.from && at_once(rise) && at_once(before);
    if (doubled) shorten(seen, rise.after - before.after);
  }
  if (seen) return Interval(*seen);
  // A step skipped at twice the scale that the skipped one before left: it had
  // grown once between.
  const std::vector<SkippedSteps> skips = skips_of(facts);
  for (std::size_t i = 1; i < skips.size(); ++i) {
    const SkippedSteps &before = skips[i - 1], &again = skips[i];
    const std::int64_t steps = *again.last - before.first - 1;
    const bool doubled = before.scale_to && *again.scale_from == 2 * *before.scale_to;
    if (doubled && steps >= 1) shorten(most, steps);
  }
  return most ? std::optional(Interval(1, *most)) : std::nullopt;
}

void set_settings(const underflow::LogFindings& log, TimelineFacts& facts) {
  const bool any_skipped = facts.skipped_in_all.high > 0;
  if (!facts.scale_first || (facts.changes.empty() && !any_skipped)) return;
  const auto init = settled(facts);
  if (!init || !frames::usable_scale(*init)) return;
  facts.settings = ScaleSettings{*init};
  if (facts.numbered) return;
  const auto window = growth_window(facts);
  facts.settings->window = window;
  facts.settings->hysteresis = hysteresis_of(log, facts);
  // Growth that skips more than one step in kUsualWindow is worth a longer
  // window.
  const bool costs = any_skipped || !facts.skips_told;
  if (costs && window && 2 * window->high <= kUsualWindow) facts.settings->longer = kUsualWindow;
}

}  // namespace halfscope::analyzers::scale_history
