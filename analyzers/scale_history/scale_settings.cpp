// SPDX-License-Identifier: Apache-2.0
// Settings of a dynamic loss scale that a run's own scale supports, and its
// starts: one that is too high, and one that begins anew in the middle of a run.
#include <algorithm>
#include <cmath>
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

namespace {

constexpr std::uint64_t kFewestSkipped = 3;

/// Returns true if more of these steps were skipped than growth of a scale
/// costs: two in 100 at the most, with a hysteresis of 2.
bool exceeds_growth(const SkippedSteps& range) {
  constexpr double kMostToGrowth = 0.02;
  const std::int64_t steps = *range.last - range.first + 1;
  return static_cast<double>(range.count.low) > kMostToGrowth * static_cast<double>(steps);
}

std::optional<double> scale_of_step(const TimelineFacts& facts, std::int64_t step) {
  const auto at = std::ranges::lower_bound(facts.scales, step, {}, &ScaleAtStep::step);
  return at != facts.scales.end() && at->step == step ? std::optional(at->scale) : std::nullopt;
}

/// The largest scale that lines have for these steps, or the one before them.
std::optional<double> from_of(const SkippedSteps& range) {
  if (range.scales.empty()) return range.scale_from;
  return std::max(range.scale_from.value_or(0), std::ranges::max(range.scales));
}

/// The skipped steps from `first` on: known steps, then ranges in which all
/// steps were skipped, or in which the scale fell, or, at `first`, more than
/// growth explains.
SkippedSteps skipped_at_start(const TimelineFacts& facts, std::int64_t first) {
  SkippedSteps start{first};
  std::int64_t step = first;
  for (const SkippedSteps& range : facts.skips) {
    if (range.first < step) continue;
    if (range.first != step || !range.last) break;
    const auto from = from_of(range);
    const bool full = all_skipped(range, *range.last);
    const bool falls = from && range.scale_to && *range.scale_to < *from;
    const bool goes_on = facts.last && *facts.last > *range.last;  // with fewer
    const bool unseen = !from && range.first == first && goes_on && exceeds_growth(range);
    if (!falls && !unseen && !full) break;
    start.count += range.count.low;
    start.last = range.last;
    start.scale_to = range.scale_to;
    if (range.first == first) start.scale_from = from;
    if (!full) break;
    step = *range.last + 1;
  }
  return start;
}

/// The scale came down from the first one on: each halving is a skipped step.
SkippedSteps fallen_at_start(const TimelineFacts& facts) {
  for (const ScaleFall& fall : facts.falls) {
    if (!facts.at_start(fall) || !fall.by || !(fall.to > 0)) continue;
    const auto halvings = static_cast<std::uint64_t>(halvings_between(fall.from, fall.to));
    const std::uint64_t most = facts.skips_told ? facts.skipped_in_all.high : halvings;
    return {fall.after, fall.by, std::min(halvings, most), fall.from, fall.to};
  }
  return {};
}

/// Returns true if the log begins with the run's first steps, or no later than
/// its lines are apart. An excerpt that begins later shows no start.
bool has_first_steps(const underflow::LogFindings& log, std::int64_t first) {
  constexpr std::size_t kFirstLines = 8;
  std::int64_t apart = 1;  // the most
  for (std::size_t i = 1; i < std::min(log.scalars.size(), kFirstLines); ++i) {
    apart = std::max(apart, log.scalars[i].step - log.scalars[i - 1].step);
  }
  return log.scalars.size() < 2 || first <= 2 * apart;
}

/// No framework's scale doubles after fewer steps than kShortestWindow by
/// default. A log may show a longer window.
bool is_jump(const ScaleChange& change, double window) {
  constexpr double kSmallestJump = 8, kShortestWindow = 16;
  if (!change.by || !(change.from > 0) || !std::isfinite(change.to)) return false;
  const auto steps = static_cast<double>(*change.by - change.after);
  const double doublings = 1 + steps / std::max(kShortestWindow, window);
  return change.to / change.from > std::max(kSmallestJump, std::exp2(doublings));
}

/// The skipped steps of a range that are after one step, up to another.
Interval within(const SkippedSteps& range, std::int64_t after, std::int64_t end) {
  const std::int64_t last = range.last.value_or(std::max(range.first, end));
  const std::int64_t inside = std::min(last, end) - std::max(range.first - 1, after);
  if (inside <= 0) return {};
  const auto steps = static_cast<std::uint64_t>(inside);
  const auto all = static_cast<std::uint64_t>(last) - static_cast<std::uint64_t>(range.first) + 1;
  const Interval outside(0, all - steps);
  return {std::min(without(range.count, outside).low, steps), std::min(range.count.high, steps)};
}

/// Steps skipped after the jump until the scale was back at a growth above what
/// it was, or lower.
Interval lost_to(const ScaleChange& jump, const TimelineFacts& facts) {
  const auto back = std::ranges::find_if(facts.changes, [&](const ScaleChange& change) {
    return change.after >= *jump.by && change.to <= 2 * jump.from;
  });
  const bool ends = back != facts.changes.end() && back->by;
  Interval lost;
  for (const SkippedSteps& range : facts.skips)
    lost += within(range, jump.after, ends ? *back->by : kAfterAll);
  return lost;
}

}  // namespace

void set_slow_start(const underflow::LogFindings& log, TimelineFacts& facts,
                    std::optional<std::int64_t> first) {
  if (first && !has_first_steps(log, *first)) return;
  SkippedSteps start;
  if (first) start = skipped_at_start(facts, *first);
  if (start.count.low < kFewestSkipped) start = fallen_at_start(facts);
  if (start.count.low < kFewestSkipped || 2 * start.count.low < facts.skipped_in_all.high) return;
  if (!start.scale_to) start.scale_to = scale_of_step(facts, *start.last + 1);
  if (!start.scale_from && first) start.scale_from = scale_of_step(facts, *first);
  const bool tried = facts.numbered || facts.last > start.last;
  if (!tried && facts.skips_told) start.scale_to.reset();  // no step in the log has it
  facts.slow_start = start;
}

void set_jump(TimelineFacts& facts) {
  if (facts.numbered) return;
  const auto& settings = facts.settings;
  const std::uint64_t seen = settings && settings->window ? settings->window->low : 0;
  std::optional<double> before_reset;  // the scale before the jump, for the reductions that follow
  for (const ScaleChange& change : facts.changes) {
    if (is_jump(change, static_cast<double>(seen))) {
      before_reset = change.from;
      if (!facts.jump) facts.jump = ScaleJump{change, change.to == facts.scale_first};
      ++facts.jump->times;
      if (facts.skips_told)
        facts.jump->lost = facts.jump->lost.value_or(Interval()) + lost_to(change, facts);
    } else if (is_rise(change)) {
      before_reset.reset();
    }
    for (ScaleFall& fall : facts.falls) {
      if (fall.after == change.after && fall.from == change.from) fall.before_reset = before_reset;
    }
  }
}

}  // namespace halfscope::analyzers::scale_history
