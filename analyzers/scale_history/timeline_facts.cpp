// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/timeline_facts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {

using underflow::LogFindings;

namespace {

constexpr double kCollapse = 4;  // one halving is the everyday probe of a dynamic policy
constexpr std::size_t kMostFalls = 5;
constexpr std::int64_t kAfterAll = std::numeric_limits<std::int64_t>::max();

/// A scale that the log tells, at a step; empty: after all steps.
struct Point {
  std::optional<std::int64_t> step;
  double scale;
  bool within = false;  ///< at some step of `step` to `by`
  std::optional<std::int64_t> by = step;
};

std::vector<Point> points_of(const LogFindings& log, const TimelineFacts& facts) {
  std::vector<Point> points;
  for (const ToldScale& told : told_scales(log)) points.push_back({told.step, told.scale});
  for (const frames::SkippedSteps& range : facts.ranges) {
    const auto end = range.last ? std::optional(*range.last + 1) : std::nullopt;
    if (range.scale_from) points.push_back({range.first, *range.scale_from});
    for (const double scale : range.scales) points.push_back({range.first, scale, true, end});
    if (range.scale_to) points.push_back({end, *range.scale_to});
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
    return a.step.value_or(kAfterAll) < b.step.value_or(kAfterAll);
  });
  return points;
}

void set_scales(const std::vector<Point>& points, TimelineFacts& facts) {
  for (const Point& point : points) {
    if (!facts.scale_first) {
      facts.scale_first = point.scale;
      facts.scale_first_step = point.step;
    }
    facts.scale_last = point.scale;
    facts.scale_least = std::min(facts.scale_least.value_or(point.scale), point.scale);
    facts.scale_most = std::max(facts.scale_most.value_or(point.scale), point.scale);
  }
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point& before = points[i - 1];
    if (before.scale == points[i].scale || !before.step) continue;
    facts.changes.push_back({*before.step, points[i].by, before.scale, points[i].scale});
  }
}

using Changes = std::span<const ScaleChange>;

/// Steps for which the scale held before changes[i].
std::int64_t held_before(Changes changes, std::size_t i) {
  const std::int64_t held = changes[i].after - changes[i - 1].by.value_or(changes[i].after);
  return std::max<std::int64_t>(0, held);
}

/// Of a change by several halvings between two lines: about as long it held after each.
void add_holds_within(const ScaleChange& change, std::vector<std::int64_t>& holds) {
  if (!change.by || !(change.to > 0) || !std::isfinite(change.from)) return;
  const auto halvings = static_cast<std::int64_t>(halvings_between(change.from, change.to));
  if (halvings < 2) return;
  holds.insert(holds.end(), static_cast<std::size_t>(halvings - 1),
               (*change.by - change.after) / halvings);
}

/// The most steps for which it may hold within one fall: far more than it usually does there, and
/// the next reduction is another matter.
std::int64_t longest_hold(Changes changes) {
  constexpr std::int64_t kLeast = 20, kFactor = 10;
  std::vector<std::int64_t> holds;
  for (std::size_t i = 1; i < changes.size(); ++i) holds.push_back(held_before(changes, i));
  for (const ScaleChange& change : changes) add_holds_within(change, holds);
  if (holds.empty()) return kLeast;
  const auto middle = holds.begin() + static_cast<std::ptrdiff_t>((holds.size() - 1) / 2);
  std::nth_element(holds.begin(), middle, holds.end());
  return std::max(kLeast, kFactor * *middle);
}

/// Of reductions in order, without growth between.
void add_falls(Changes reductions, std::vector<ScaleFall>& falls) {
  const std::int64_t longest = longest_hold(reductions);
  for (std::size_t begin = 0, end = 0; begin < reductions.size(); begin = end) {
    for (end = begin + 1; end < reductions.size(); ++end) {
      if (held_before(reductions, end) > longest) break;
    }
    const ScaleChange &first = reductions[begin], &last = reductions[end - 1];
    if (last.to > 0 && first.from / last.to < kCollapse) continue;
    falls.push_back({first.after, last.by, first.from, last.to, end - begin, std::nullopt});
  }
}

void set_falls(TimelineFacts& facts) {
  for (auto at = facts.changes.begin(); at != facts.changes.end();) {
    const auto first = std::find_if(at, facts.changes.end(), is_fall);
    at = std::find_if_not(first, facts.changes.end(), is_fall);
    add_falls({first, at}, facts.falls);
  }
  std::stable_sort(facts.falls.begin(), facts.falls.end(), [](const auto& a, const auto& b) {
    return a.from * b.to > b.from * a.to;  // by from / to, which may be infinite
  });
  if (facts.falls.size() > kMostFalls) facts.falls.resize(kMostFalls);
}

/// Whether the scale, which lines tell no more, must have grown twice: so many steps in a row were
/// clean.
bool must_have_grown(const LogFindings& log, const TimelineFacts& facts,
                     const std::vector<Point>& points) {
  const auto last = last_skipped(facts);
  if (facts.numbered || !facts.skips_told || !last || !facts.last || *facts.last <= *last)
    return false;
  if (points.empty() || points.back().step.value_or(kAfterAll) > *last + 1) return false;
  const auto window = growth_window(log, facts);
  const std::uint64_t twice = 2 * (window ? window->high : kUsualWindow);
  return static_cast<std::uint64_t>(*facts.last - *last) > twice;
}

/// A fall is over where the scale came to four times as much or more later. One growth may be the
/// probe after which it falls again.
void set_over(const LogFindings& log, const std::vector<Point>& points, TimelineFacts& facts) {
  facts.grew_unseen = !facts.falls.empty() && must_have_grown(log, facts, points);
  for (ScaleFall& fall : facts.falls) {
    fall.over = facts.grew_unseen || (fall.to > 0 && *facts.scale_last >= kCollapse * fall.to);
  }
}

/// The tensor of each step that comes closest to overflow; without a name where all is zero.
using Drivers = std::map<std::int64_t, ScaleDriver>;

/// Of a log with many tensors and steps: a name is copied where it is kept.
void add_magnitude(const std::string& tensor, log::Role role, std::int64_t step, double max_abs,
                   bool nonfinite_known, Drivers& drivers) {
  ScaleDriver& kept = drivers[step];
  const bool not_finite = !std::isfinite(max_abs);
  if (!std::isfinite(kept.max_abs)) {
    kept.also += not_finite ? 1 : 0;
  } else if (not_finite || max_abs > kept.max_abs) {
    kept = {tensor, role, step, max_abs};
    kept.nonfinite_known = nonfinite_known;
  }
}

Drivers drivers_of(const LogFindings& log) {
  Drivers drivers;
  for (const underflow::TensorFindings& tensor : log.tensors) {
    if (!is_gradient(tensor.role)) continue;
    for (const underflow::StepFindings& step : tensor.per_step) {
      const bool not_finite = step.counts.nan.low + step.counts.inf.low > 0;
      const double max_abs =
          not_finite ? std::numeric_limits<double>::infinity() : step.max_abs.value_or(0);
      add_magnitude(tensor.name, tensor.role, step.step, max_abs, step.counts.nonfinite_known,
                    drivers);
    }
  }
  for (const frames::StepPeak& peak : log.peaks) {
    if (peak.tensor.empty() || !is_gradient(peak.role)) continue;
    add_magnitude(peak.tensor, peak.role, peak.step, peak.max_abs, true, drivers);
  }
  return drivers;
}

/// The scale of a step: the last one told at it or before, else the first one; `otherwise` where no
/// step's is told.
double scale_at(const std::vector<Point>& points, std::int64_t step, double otherwise) {
  if (points.empty()) return otherwise;
  const auto after = std::upper_bound(
      points.begin(), points.end(), step,
      [](std::int64_t s, const Point& p) { return s < p.step.value_or(kAfterAll); });
  return after == points.begin() ? points.front().scale : std::prev(after)->scale;
}

std::optional<ScaleDriver> driver_of(const ScaleFall& fall, const Drivers& drivers,
                                     const std::vector<Point>& points) {
  std::optional<ScaleDriver> driver;
  const auto of_step = [&](const ScaleDriver& of) {
    ScaleDriver scaled = of;
    scaled.scale = scale_at(points, of.step, fall.from);
    return scaled;
  };
  const auto first = drivers.lower_bound(fall.first);
  for (auto at = first; at != drivers.end() && (!fall.last || at->first < *fall.last); ++at) {
    if (at->second.tensor.empty()) continue;
    const ScaleDriver next = of_step(at->second);
    const auto reach = [](const ScaleDriver& d) { return d.max_abs * d.scale; };
    if (!driver || !(reach(next) <= reach(*driver))) driver = next;
    if (!std::isfinite(driver->max_abs)) return driver;
  }
  if (driver || first == drivers.begin() || std::prev(first)->second.tensor.empty()) return driver;
  driver = of_step(std::prev(first)->second);
  driver->before = true;
  return driver;
}

/// Beyond the log's last step such an entry tells no more than what the scale came to.
bool is_only_scale(const log::StepScalars& s) {
  return s.loss_scale && !s.loss && !s.learning_rate && !s.found_inf && !s.max_abs_weight_grad &&
         !s.max_abs_activation_grad;
}

/// How many of these were skipped at a scale of 1 or less: each reduction down to it was of a step
/// at a larger one.
std::uint64_t skipped_at_one(const frames::SkippedSteps& range) {
  std::uint64_t above = 0;
  double scale = range.scale_from.value_or(2);
  for (const double next : range.scales) {
    if (next < scale && scale > 1) ++above;
    scale = next;
  }
  return scale > 1 ? 0 : range.count.low - std::min(range.count.low, above);
}

/// The steps that the log has scalars of. Beyond the last one that its readers tell of, an entry
/// tells no more than what the scale came to.
void set_steps(const LogFindings& log, TimelineFacts& facts) {
  std::optional<std::int64_t> last;
  for (const frames::LogKind& kind : log.kinds) last = std::max(last, kind.last_step);
  for (std::size_t i = 0; i < log.scalars.size(); ++i) {
    const log::StepScalars& s = log.scalars[i];
    if (last && s.step > *last && is_only_scale(s)) break;
    ++facts.steps;
    if (!facts.first) facts.first = s.step;
    facts.last = s.step;
    facts.skips_told |= s.found_inf.has_value();
    if (!s.found_inf.value_or(false)) continue;
    facts.skipped.push_back(s.step);
    frames::SkippedSteps& skip = facts.skips.emplace_back();
    skip = {s.step, s.step, 1, s.loss_scale};
    const bool goes_on = i + 1 < log.scalars.size() && log.scalars[i + 1].step == s.step + 1;
    if (goes_on) skip.scale_to = log.scalars[i + 1].loss_scale;
  }
}

/// Takes the ranges to the single steps.
void set_skips(const LogFindings& log, TimelineFacts& facts) {
  facts.ranges = log.skips;
  facts.skips.insert(facts.skips.end(), log.skips.begin(), log.skips.end());
  std::ranges::stable_sort(facts.skips, {}, &frames::SkippedSteps::first);
  facts.skips_told |= !facts.ranges.empty();
  for (const frames::SkippedSteps& range : facts.skips) {
    facts.skipped_in_all += range.count;
    const std::uint64_t at_one = skipped_at_one(range);
    if (at_one > 0 && facts.skipped_at_one == 0) facts.first_at_one = range.first;
    facts.skipped_at_one += at_one;
  }
}

/// What the kinds of the log say. Returns whether entries are left without a step.
bool set_kinds(const LogFindings& log, TimelineFacts& facts) {
  bool steps_open = false;
  for (const frames::LogKind& kind : log.kinds) {
    facts.kinds.push_back(kind.name);
    facts.skips_at_least = facts.skips_at_least || kind.skips_at_least;
    facts.skipped_in_all += Interval(0, kind.perhaps_skipped);
    facts.ended_at_minimum = facts.ended_at_minimum || kind.ended_at_minimum;
    if (kind.ranks.ranks > 1) facts.ranks = kind.ranks;
    if (!facts.counted_from) facts.counted_from = kind.counted_from;
    facts.remarks.insert(facts.remarks.end(), kind.remarks.begin(), kind.remarks.end());
    if (kind.nonfinite_line) facts.nonfinite_line = kind.nonfinite_line;
    if (!facts.bad_loss_part) facts.bad_loss_part = kind.bad_loss_part;
    if (!kind.other_scalers.empty()) facts.scaler = kind.scaler;
    for (const frames::OtherScaler& other : kind.other_scalers) {
      facts.other_scalers.push_back(other);
    }
    steps_open |= std::ranges::count(kind.gaps, frames::Gap::steps) > 0;
  }
  facts.skips_told = facts.skips_told || facts.counted_from || facts.skipped_in_all.high > 0;
  return steps_open;
}

TimelineFacts facts_of(const LogFindings& log) {
  TimelineFacts facts;
  facts.log = log.name;
  set_steps(log, facts);
  set_skips(log, facts);
  const bool steps_open = set_kinds(log, facts);
  facts.numbered = steps_open && facts.ranges.empty();
  std::vector<Point> points = points_of(log, facts);
  set_scales(points, facts);
  std::erase_if(points, [](const Point& point) { return point.within; });
  set_falls(facts);
  set_over(log, points, facts);
  const Drivers drivers = drivers_of(log);
  facts.magnitudes = !drivers.empty();
  for (ScaleFall& fall : facts.falls) {
    if (!facts.numbered) fall.driver = driver_of(fall, drivers, points);
  }
  set_state(log, facts);
  return facts;
}

}  // namespace

std::optional<std::int64_t> last_skipped(const TimelineFacts& facts) {
  std::optional<std::int64_t> last;
  for (const frames::SkippedSteps& range : facts.skips) {
    if (range.count.high > 0) last = std::max(last, std::optional(range.last.value_or(kAfterAll)));
  }
  return last;
}

std::vector<ToldScale> told_scales(const LogFindings& log) {
  std::vector<ToldScale> told;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss_scale) told.push_back({scalars.step, *scalars.loss_scale});
  }
  return told;
}

const ScaleFall* TimelineFacts::collapse() const {
  constexpr double kDeep = 1024;  // gradients that grew so far go on to
  const auto found = std::ranges::find_if(falls, [&](const ScaleFall& fall) {
    const double from = fall.net_from();
    const bool deep = fall.to <= 1 || (!at_start(fall) && from / fall.to >= kDeep);
    return deep && !fall.over && scale_last.value_or(fall.to) * kCollapse <= from;
  });
  return found == falls.end() ? nullptr : &*found;
}

bool TimelineFacts::below_one() const { return scale_most && *scale_most > 0 && *scale_most < 1; }

std::optional<std::int64_t> TimelineFacts::collapsed_since() const {
  if (const ScaleFall* fall = collapse()) return fall->first;
  return below_one() ? first : std::nullopt;
}

std::string_view name_of(RunState state) {
  switch (state) {
    case RunState::not_needed: return "not_needed";
    case RunState::normal: return "normal";
    case RunState::slow_start: return "slow_start";
    case RunState::skipping: return "skipping";
    case RunState::collapsed: return "collapsed";
    case RunState::broken: return "broken";
    case RunState::unknown: break;
  }
  return "unknown";
}

bool TimelineFacts::at_start(const ScaleFall& fall) const {
  // Steps between entries are not told, and the first entry tells the scale after it.
  const std::int64_t soon = numbered ? 1 : 20;
  return !changes.empty() && fall.first == changes.front().after && first &&
         fall.first - *first <= soon;
}

std::optional<TimelineFacts> timeline_facts(const LogFindings& log) {
  if (log.kinds.empty()) return std::nullopt;
  TimelineFacts facts = facts_of(log);
  const bool told = facts.scale_first || facts.skips_told;
  const bool all_there_is = log.tensors.empty() && log.peaks.empty() && facts.steps > 0;
  const bool tells = told || facts.alarming() || all_there_is;
  return tells ? std::optional(std::move(facts)) : std::nullopt;
}

std::optional<TimelineFacts> run_log_facts(const LogFindings& log) {
  if (!log.manifest || log.scalars.empty()) return std::nullopt;
  LogFindings alone;
  alone.name = log.name;
  alone.kinds = {frames::LogKind{"run log", {}}};
  alone.scalars = log.scalars;
  for (log::StepScalars& scalars : alone.scalars) {
    std::optional<double>& scale = scalars.loss_scale;
    if (scale && !readers::common::can_be_scale(*scale)) scale.reset();
  }
  return timeline_facts(alone);
}

}  // namespace halfscope::analyzers::scale_history
