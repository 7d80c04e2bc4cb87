// SPDX-License-Identifier: Apache-2.0
// The series of a run whose log has its loss scale and skipped steps but no gradients.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "analyzers/replay/step_series.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::replay {

using frames::SkippedSteps;
using scale_history::TimelineFacts;

namespace {

constexpr std::uint64_t kMostAttempts = std::uint64_t{1} << 24;
using ScaleAt = std::map<std::int64_t, double>;

/// Returns the recorded scales by step: from scalars, and from before and after skipped steps.
ScaleAt told_scales(const underflow::LogFindings& log, const TimelineFacts& facts) {
  ScaleAt told;
  for (const SkippedSteps& range : facts.ranges) {
    if (range.scale_from) told.try_emplace(range.first, *range.scale_from);
    if (range.scale_to && range.last) told.try_emplace(*range.last + 1, *range.scale_to);
  }
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss_scale) told.insert_or_assign(scalars.step, *scalars.loss_scale);
  }
  return told;
}

/// Returns a lower bound of a step's scale if no step around it is skipped: between two recorded
/// scales it does not fall. Empty before the first recorded scale.
std::optional<double> least_scale(const ScaleAt& told, std::int64_t step) {
  const auto after = told.lower_bound(step);
  if (after != told.end() && after->first == step) return after->second;
  if (after == told.begin()) return std::nullopt;
  const double before = std::prev(after)->second;
  return after == told.end() ? before : std::min(before, after->second);
}

AttemptMagnitudes clean_at(std::optional<double> scale) {
  AttemptMagnitudes seen;
  seen.partial = true;
  if (scale) seen.clean_to = *scale;
  return seen;
}

/// Returns gradients that overflow from a scale up; unknown gradients if there is no scale.
AttemptMagnitudes overflowing_at(std::optional<double> scale) {
  return scale ? AttemptMagnitudes{kInfinity, *scale} : clean_at(std::nullopt);
}

/// Returns the scale at which the nth of these skipped steps was tried; empty if unknown.
std::optional<double> tried_at(const SkippedSteps& range, std::uint64_t nth) {
  if (range.scales.size() == 2 * range.count.high) return range.scales[2 * nth];
  if (!range.scale_from) return std::nullopt;
  return std::max(
      std::ldexp(*range.scale_from, -static_cast<int>(std::min<std::uint64_t>(nth, 64))),
      range.scale_to.value_or(0));
}

class Builder {
 public:
  Builder(const underflow::LogFindings& log, const TimelineFacts& facts)
      : told_(told_scales(log, facts)), first_(facts.first_attempt) {
    series_.log = facts.log;
    series_.from_scale = true;
    series_.notes.add(
        log::printable(facts.log) +
        ": has no gradients; a step that was applied is known to be clean at its own scale and "
        "below, a skipped one to overflow at its own and above, and at other scales it is unknown");
    for (std::int64_t step = facts.first_attempt; step <= facts.last_attempt; ++step) {
      series_.steps.push_back(step);
      const auto scale = least_scale(told_, step);
      series_.recorded_scale.push_back(scale);
      series_.recorded_skip.emplace_back(false);
      series_.seen.push_back(clean_at(scale));
    }
  }

  void skip(std::int64_t step) {
    const std::size_t i = index_of(step);
    if (i < series_.seen.size()) put(i, series_.recorded_scale[i]);
  }

  void skip(const SkippedSteps& range) {
    const std::size_t begin = index_of(range.first);
    const std::size_t end = range.last ? index_of(*range.last) + 1 : series_.seen.size();
    const auto left = range.scale_to ? range.scale_to : least_scale(told_, range.first);
    for (std::size_t i = begin; i < std::min(end, series_.seen.size()); ++i) {
      const std::uint64_t nth = i - begin;
      if (nth < range.count.low) {
        put(i, tried_at(range, nth));
      } else if (nth < range.count.high) {
        series_.recorded_skip[i].reset();
        series_.seen[i] = clean_at(std::nullopt);
      } else {
        series_.recorded_scale[i] = left;
        series_.seen[i] = clean_at(left);
      }
    }
  }

  /// Marks a step whose loss is NaN or infinite: no scale helps.
  void broken_loss(std::int64_t step) {
    const std::size_t i = index_of(step);
    if (i < series_.seen.size()) series_.seen[i] = AttemptMagnitudes{kInfinity, 0};
  }

  StepSeries take() { return std::move(series_); }

 private:
  std::size_t index_of(std::int64_t step) const { return static_cast<std::size_t>(step - first_); }

  void put(std::size_t i, std::optional<double> scale) {
    series_.recorded_skip[i] = true;
    series_.recorded_scale[i] = scale;
    series_.seen[i] = overflowing_at(scale);
  }

  ScaleAt told_;
  std::int64_t first_;
  StepSeries series_;
};

}  // namespace

std::optional<StepSeries> scale_series(const underflow::LogFindings& log,
                                       const TimelineFacts& facts) {
  const bool steps = facts.attempts && *facts.attempts <= kMostAttempts;
  if (!steps || !facts.scale_first || !facts.skips_told) return std::nullopt;
  Builder builder(log, facts);
  for (const std::int64_t step : facts.skipped) builder.skip(step);
  for (const SkippedSteps& range : facts.ranges) builder.skip(range);
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss && !std::isfinite(*scalars.loss)) builder.broken_loss(scalars.step);
  }
  return builder.take();
}

}  // namespace halfscope::analyzers::replay
