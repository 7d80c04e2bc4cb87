// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/timeline_facts.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {

using frames::SkippedSteps;
using underflow::LogFindings;

namespace {

constexpr double kCollapse = 4;  // one halving is the everyday probe of a dynamic policy

/// A scale at some step from `step` to `by`, where one of these is enough to
/// place it.
struct Point : ScaleAtStep {
  std::int64_t by = step;

  bool placed() const { return by == step; }
};

std::vector<Point> points_of(const TimelineFacts& facts) {
  std::vector<Point> points;
  points.reserve(facts.scales.size());
  for (const ScaleAtStep& at : facts.scales) points.push_back({at});
  for (const SkippedSteps& range : facts.ranges) {
    const std::int64_t end = range.last ? *range.last + 1 : kAfterAll;
    if (range.scale_from) points.push_back({{range.first, *range.scale_from}});
    for (const double scale : range.scales) points.push_back({{range.first, scale}, end});
    if (range.scale_to) points.push_back({{end, *range.scale_to}});
  }
  if (!facts.ranges.empty()) std::ranges::stable_sort(points, {}, &Point::step);
  return points;
}

std::optional<std::int64_t> known(std::int64_t step) {
  return step == kAfterAll ? std::nullopt : std::optional(step);
}

void set_scales(const std::vector<Point>& points, TimelineFacts& facts) {
  if (points.empty()) return;
  facts.scale_first = points.front().scale;
  facts.scale_first_step = known(points.front().step);
  facts.scale_last = points.back().scale;
  const auto [least, most] = std::ranges::minmax(points, {}, &Point::scale);
  facts.scale_least = least.scale;
  facts.scale_most = most.scale;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Point &before = points[i - 1], &point = points[i];
    if (before.scale == point.scale || before.step == kAfterAll) continue;
    facts.changes.push_back({before.step, known(point.by), before.scale, point.scale});
  }
}

using Changes = std::span<const ScaleChange>;

/// The steps for which the scale held before changes[i].
std::int64_t held_before(Changes changes, std::size_t i) {
  const std::int64_t held = changes[i].after - changes[i - 1].by.value_or(changes[i].after);
  return std::max<std::int64_t>(0, held);
}

/// The most steps for which the scale may hold within one fall: ten times as
/// many as it usually does there. After several halvings between two lines it
/// held for about equal times.
std::int64_t longest_hold(Changes changes) {
  constexpr std::int64_t kLeast = 20, kFactor = 10;
  std::vector<std::int64_t> holds;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const ScaleChange& change = changes[i];
    if (i > 0) holds.push_back(held_before(changes, i));
    if (!change.by || !(change.to > 0) || !std::isfinite(change.from)) continue;
    const auto halvings = static_cast<std::int64_t>(halvings_between(change.from, change.to));
    if (halvings < 2) continue;
    holds.insert(holds.end(), static_cast<std::size_t>(halvings - 1),
                 (*change.by - change.after) / halvings);
  }
  if (holds.empty()) return kLeast;
  const auto middle = holds.begin() + static_cast<std::ptrdiff_t>((holds.size() - 1) / 2);
  std::ranges::nth_element(holds, middle);
  return std::max(kLeast, kFactor * *middle);
}

/// Adds the falls of reductions in order, without growth between.
void add_falls(Changes reductions, std::vector<ScaleFall>& falls) {
  const std::int64_t longest = longest_hold(reductions);
  for (std::size_t begin = 0, end = 0; begin < reductions.size(); begin = end) {
    for (end = begin + 1; end < reductions.size(); ++end) {
      if (held_before(reductions, end) > longest) break;
    }
    const ScaleChange &first = reductions[begin], &last = reductions[end - 1];
    if (last.to > 0 && first.from / last.to < kCollapse) continue;
    falls.push_back({{first.after, last.by, first.from, last.to}, end - begin});
  }
}

void set_falls(TimelineFacts& facts) {
  constexpr std::size_t kMostFalls = 5;
  for (auto at = facts.changes.begin(); at != facts.changes.end();) {
    const auto first = std::find_if(at, facts.changes.end(), is_fall);
    at = std::find_if_not(first, facts.changes.end(), is_fall);
    add_falls({first, at}, facts.falls);
  }
  std::ranges::stable_sort(facts.falls, [](const ScaleFall& a, const ScaleFall& b) {
    return a.from * b.to > b.from * a.to;  // by from / to, which may be infinite
  });
  if (facts.falls.size() > kMostFalls) facts.falls.resize(kMostFalls);
}

/// Returns true if so many clean steps follow the last scale that it must have
/// grown twice.
bool must_have_grown(const TimelineFacts& facts, const std::vector<Point>& points) {
  const auto last = last_skipped(facts);
  if (facts.numbered || !facts.skips_told || !last || !facts.last || *facts.last <= *last)
    return false;
  if (points.empty() || points.back().step > *last + 1) return false;
  const std::uint64_t window = growth_window(facts).value_or(kUsualWindow).high;
  return static_cast<std::uint64_t>(*facts.last - *last) > 2 * window;
}

/// The tensor of each step that comes closest to overflow; without a name if
/// all is zero.
using Drivers = std::map<std::int64_t, ScaleDriver>;

/// A log may have many tensors and steps: the name is copied only if it is
/// kept.
void add_magnitude(const std::string& tensor, log::Role role, std::int64_t step, double max_abs,
                   bool nonfinite_known, Drivers& drivers) {
  ScaleDriver& kept = drivers[step];
  const bool not_finite = !std::isfinite(max_abs);
  if (!std::isfinite(kept.max_abs)) {
    kept.also += not_finite ? 1 : 0;
  } else if (not_finite || max_abs > kept.max_abs) {
    kept = {tensor, role, step, max_abs, nonfinite_known};
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

std::optional<ScaleDriver> driver_of(const ScaleFall& fall, const Drivers& drivers,
                                     const std::vector<Point>& points) {
  const auto scaled = [&](ScaleDriver driver) {
    auto at = std::ranges::upper_bound(points, driver.step, {}, &Point::step);
    if (at != points.begin()) --at;
    driver.scale = points.empty() ? fall.from : at->scale;
    return driver;
  };
  std::optional<ScaleDriver> closest;
  const auto first = drivers.lower_bound(fall.after);
  for (auto at = first; at != drivers.end() && (!fall.by || at->first < *fall.by); ++at) {
    if (at->second.tensor.empty()) continue;
    const ScaleDriver next = scaled(at->second);
    if (!std::isfinite(next.max_abs)) return next;
    if (!closest || next.max_abs * next.scale > closest->max_abs * closest->scale) closest = next;
  }
  if (closest || first == drivers.begin() || std::prev(first)->second.tensor.empty())
    return closest;
  closest = scaled(std::prev(first)->second);
  closest->before = true;
  return closest;
}

/// The skipped steps of a range whose scale was 1 or less: each reduction down
/// to that was of a step at a larger one.
std::uint64_t skipped_at_one(const SkippedSteps& range) {
  std::uint64_t above = 0;
  double scale = range.scale_from.value_or(2);
  for (const double next : range.scales) {
    if (next < scale && scale > 1) ++above;
    scale = next;
  }
  return scale > 1 ? 0 : range.count.low - std::min(range.count.low, above);
}

/// Takes the scalars of each step, in order, and sets what they say by
/// themselves.
class Walk {
 public:
  explicit Walk(TimelineFacts& facts) : facts_(facts) {}

  /// `counts`: the step is one of the run, not only the place of the scale that
  /// it ended with.
  void take(const log::StepScalars& s, bool counts) {
    if (s.loss_scale) facts_.scales.push_back({s.step, *s.loss_scale});
    const bool next = before_ != nullptr && before_->step + 1 == s.step;
    if (next && before_->found_inf.value_or(false)) take_after_skip(s);
    if (counts) take_step(s);
    take_loss(s);
    before_ = &s;
  }

  /// Some programs leave out a loss that is NaN.
  void finish() {
    if (with_ >= kMany && missing_ >= kMany) facts_.loss_missing_since = missing_since_;
  }

 private:
  void take_step(const log::StepScalars& s) {
    ++facts_.steps;
    if (!facts_.first) facts_.first = s.step;
    facts_.last = s.step;
    facts_.skips_told |= s.found_inf.has_value();
    if (!s.found_inf.value_or(false)) return;
    facts_.skipped.push_back(s.step);
    facts_.skips.push_back({s.step, s.step, 1, s.loss_scale});
  }

  /// A schedule that waits for an update has the learning rate of a skipped
  /// step again.
  void take_after_skip(const log::StepScalars& s) {
    facts_.skips.back().scale_to = s.loss_scale;
    if (!before_->learning_rate || !s.learning_rate) return;
    ++facts_.schedule_known;
    if (*before_->learning_rate != *s.learning_rate) ++facts_.schedule_ahead;
  }

  void take_loss(const log::StepScalars& s) {
    if (s.loss) {
      if (missing_ > 0) with_ = 0;  // it comes and goes
      ++facts_.losses;
      ++with_;
      missing_ = 0;
    } else if (s.learning_rate && missing_++ == 0) {
      missing_since_ = s.step;
    }
  }

  TimelineFacts& facts_;
  const log::StepScalars* before_ = nullptr;
  std::uint64_t with_ = 0,
                missing_ = 0;  // the last steps that have a loss, and that lack it
  std::int64_t missing_since_ = 0;
};

void take_scalars(const LogFindings& log, TimelineFacts& facts) {
  std::optional<std::int64_t> last;
  for (const frames::LogKind& kind : log.kinds) last = std::max(last, kind.last_step);
  Walk walk(facts);
  for (const log::StepScalars& s : log.scalars) {
    const bool only_scale = s.loss_scale && !s.loss && !s.learning_rate && !s.found_inf &&
                            !s.max_abs_weight_grad && !s.max_abs_activation_grad;
    walk.take(s, !(last && s.step > *last && only_scale));
  }
  walk.finish();
}

void add_ranges(const LogFindings& log, TimelineFacts& facts) {
  facts.ranges = log.skips;
  facts.skips.insert(facts.skips.end(), log.skips.begin(), log.skips.end());
  std::ranges::stable_sort(facts.skips, {}, &SkippedSteps::first);
  facts.skips_told |= !facts.ranges.empty();
  for (const SkippedSteps& range : facts.skips) {
    facts.skipped_in_all += range.count;
    const std::uint64_t at_one = skipped_at_one(range);
    if (at_one > 0 && facts.skipped_at_one == 0) facts.first_at_one = range.first;
    facts.skipped_at_one += at_one;
  }
}

void add_kinds(const LogFindings& log, TimelineFacts& facts) {
  for (const frames::LogKind& kind : log.kinds) {
    facts.kinds.push_back(kind.name);
    facts.skips_at_least |= kind.skips_at_least;
    facts.skipped_in_all += Interval(0, kind.perhaps_skipped);
    facts.ended_at_minimum |= kind.ended_at_minimum;
    if (kind.ranks.ranks > 1) facts.ranks = kind.ranks;
    if (!facts.counted_from) facts.counted_from = kind.counted_from;
    facts.remarks.insert(facts.remarks.end(), kind.remarks.begin(), kind.remarks.end());
    if (kind.nonfinite_line) facts.nonfinite_line = kind.nonfinite_line;
    if (!facts.bad_loss_part) facts.bad_loss_part = kind.bad_loss_part;
    if (!kind.other_scalers.empty()) facts.scaler = kind.scaler;
    facts.other_scalers.insert(facts.other_scalers.end(), kind.other_scalers.begin(),
                               kind.other_scalers.end());
    const bool no_steps = std::ranges::count(kind.gaps, frames::Gap::steps) > 0;
    facts.numbered |= no_steps && facts.ranges.empty();
  }
  facts.skips_told = facts.skips_told || facts.counted_from || facts.skipped_in_all.high > 0;
}

TimelineFacts facts_of(const LogFindings& log) {
  TimelineFacts facts;
  facts.log = log.name;
  take_scalars(log, facts);
  add_ranges(log, facts);
  add_kinds(log, facts);
  std::vector<Point> points = points_of(facts);
  set_scales(points, facts);
  std::erase_if(points, [](const Point& point) { return !point.placed(); });
  set_falls(facts);
  facts.grew_unseen = !facts.falls.empty() && must_have_grown(facts, points);
  const Drivers drivers = drivers_of(log);
  facts.magnitudes = !drivers.empty();
  for (ScaleFall& fall : facts.falls) {  // one growth may be the probe after which it falls again
    fall.over = facts.grew_unseen || (fall.to > 0 && *facts.scale_last >= kCollapse * fall.to);
    if (!facts.numbered) fall.driver = driver_of(fall, drivers, points);
  }
  set_state(log, facts);
  return facts;
}

}  // namespace

std::optional<std::int64_t> last_skipped(const TimelineFacts& facts) {
  std::optional<std::int64_t> last;
  for (const SkippedSteps& range : facts.skips) {
    if (range.count.high > 0) last = std::max(last, std::optional(range.last.value_or(kAfterAll)));
  }
  return last;
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
  if (const ScaleFall* fall = collapse()) return fall->after;
  return below_one() ? first : std::nullopt;
}

std::string_view name_of(RunState state) {
  constexpr std::string_view kNames[] = {"unknown",  "not_needed", "normal", "slow_start",
                                         "skipping", "collapsed",  "broken"};
  return kNames[static_cast<std::size_t>(state)];
}

bool TimelineFacts::at_start(const ScaleFall& fall) const {
  const std::int64_t soon = numbered ? 1 : 20;  // the first entry has the scale after it
  return !changes.empty() && fall.after == changes.front().after && first &&
         fall.after - *first <= soon;
}

std::optional<TimelineFacts> timeline_facts(const LogFindings& log) {
  if (log.kinds.empty()) return std::nullopt;
  TimelineFacts facts = facts_of(log);
  const bool scalars_alone = log.tensors.empty() && log.peaks.empty() && facts.steps > 0;
  if (!facts.scale_first && !facts.skips_told && !facts.alarming() && !scalars_alone)
    return std::nullopt;
  return facts;
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
