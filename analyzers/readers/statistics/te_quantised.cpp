// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/te_quantised.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/readers/common/roles.hpp"

namespace halfscope::analyzers::readers::statistics {

using common::Bounds;
using common::Contradiction;
using frames::QuantisedSeries;
using frames::QuantisedStatistic;
using frames::QuantisedValue;

namespace {

constexpr Contradiction kNotFinite{"a statistic of a quantised tensor is NaN or infinite",
                                   "it is not used"};
constexpr Contradiction kNoPercentage{"underflows% or overflows% is below 0 or above 100",
                                      "it is not used"};
constexpr Contradiction kNegative{"scale_inv or mse is negative", "it is not used"};
constexpr Contradiction kScalesCrossed{"scale_inv_min is above scale_inv_max", "neither is used"};

bool is_share(QuantisedStatistic statistic) {
  return statistic == QuantisedStatistic::underflows || statistic == QuantisedStatistic::overflows;
}

Bounds bounds_of(QuantisedStatistic statistic, double printed) {
  const Bounds bounds = common::printed_bounds(printed, kLastDigit);
  const double most = is_share(statistic) ? 100 : std::numeric_limits<double>::infinity();
  return {std::clamp(bounds.low, 0.0, most), std::min(bounds.high, most)};
}

/// Merges two sorted series. If both have a step, the worse value is kept.
void merge(PrintedSeries& to, const PrintedSeries& from, const Steps& steps) {
  const auto statistic = std::get<Quantised>(to.name.statistic).statistic;
  const bool least = statistic == QuantisedStatistic::scale_inv_min;
  PrintedSeries both{to.logged, to.name, {}, {}, {}};
  std::size_t a = 0, b = 0;
  while (a < to.steps.size() || b < from.steps.size()) {
    const bool has_a = a < to.steps.size(), has_b = b < from.steps.size();
    const std::int64_t step_a = has_a ? steps[to.steps[a]] : 0;
    const std::int64_t step_b = has_b ? steps[from.steps[b]] : 0;
    const bool take_a = has_a && (!has_b || step_a <= step_b);
    const bool take_b = has_b && (!has_a || step_b <= step_a);
    if (take_a && take_b) {
      const double worse =
          least ? std::min(to.values[a], from.values[b]) : std::max(to.values[a], from.values[b]);
      both.add(to.steps[a], worse);
    } else {
      both.add(take_a ? to.steps[a] : from.steps[b], take_a ? to.values[a] : from.values[b]);
    }
    a += take_a ? 1 : 0;
    b += take_b ? 1 : 0;
  }
  to.steps = std::move(both.steps);
  to.values = std::move(both.values);
}

bool is_selected(const TeName& name, const frames::Selection& selection) {
  return std::holds_alternative<Quantised>(name.statistic) &&
         frames::selects(selection, std::string(name.tensor));
}

log::Role role_of(const TeName& name, const frames::Selection& selection) {
  const auto [role, source] = common::role_of(selection, std::string(name.tensor));
  return source == frames::RoleSource::option ? role : name.role;
}

/// The selected steps of all selected series, ascending.
std::vector<std::int64_t> steps_of(const PrintedFile& all, const Steps& steps,
                                   const frames::Selection& selection) {
  std::vector<bool> has(steps.size());
  for (const PrintedSeries& series : all.all()) {
    if (!is_selected(series.name, selection)) continue;
    for (const std::uint32_t step : series.steps) has[step] = true;
  }
  std::vector<std::int64_t> found;
  for (std::uint32_t i = 0; i < has.size(); ++i) {
    if (has[i] && frames::in_steps(selection, steps[i])) found.push_back(steps[i]);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The steps at which `least` is above `most`.
std::vector<std::uint32_t> crossed(const PrintedSeries& least, const PrintedSeries& most,
                                   const Steps& steps) {
  std::vector<std::uint32_t> found;
  std::size_t b = 0;
  for (std::size_t a = 0; a < least.steps.size(); ++a) {
    while (b < most.steps.size() && steps[most.steps[b]] < steps[least.steps[a]]) ++b;
    if (b == most.steps.size()) break;
    if (most.steps[b] == least.steps[a] && least.values[a] > most.values[b]) {
      found.push_back(least.steps[a]);
    }
  }
  return found;
}

/// Drops the steps in `dropped`, which must be in the order of the series.
void drop(PrintedSeries& series, const std::vector<std::uint32_t>& dropped) {
  std::size_t kept = 0;
  auto next = dropped.begin();
  for (std::size_t i = 0; i < series.steps.size(); ++i) {
    if (next != dropped.end() && series.steps[i] == *next) {
      ++next;
      continue;
    }
    series.steps[kept] = series.steps[i];
    series.values[kept++] = series.values[i];
  }
  series.steps.resize(kept);
  series.values.resize(kept);
}

}  // namespace

const Contradiction* wrong_with(QuantisedStatistic statistic, double value) {
  if (!std::isfinite(2 * value)) return &kNotFinite;  // its bounds are not finite either
  if (is_share(statistic)) return value < 0 || value > 100 ? &kNoPercentage : nullptr;
  return value < 0 ? &kNegative : nullptr;
}

void QuantisedRanks::add(PrintedFile&& file, const Steps& steps) {
  for (const PrintedSeries& series : file.all()) {
    none_ = none_ && !std::holds_alternative<Quantised>(series.name.statistic);
  }
  if (std::exchange(first_, false)) {
    all_ = std::move(file);
    return;
  }
  for (const PrintedSeries& series : file.all()) {
    if (!std::holds_alternative<Quantised>(series.name.statistic)) continue;
    merge(*all_.find(series.logged), series, steps);
  }
}

void QuantisedRanks::drop_crossed(const Steps& steps, const std::string& log,
                                  frames::Notes& notes) {
  common::Contradictions contradictions;
  for (PrintedSeries& least : all_.all()) {
    const auto* const what = std::get_if<Quantised>(&least.name.statistic);
    if (what == nullptr || what->statistic != QuantisedStatistic::scale_inv_min) continue;
    std::string other(least.logged);
    other.replace(other.rfind("_min"), 4, "_max");
    PrintedSeries* const most = all_.known(other);
    if (most == nullptr) continue;
    const std::vector<std::uint32_t> found = crossed(least, *most, steps);
    for (const std::uint32_t step : found) {
      contradictions.add(
          kScalesCrossed, 0,
          fmt::format("'{}', iteration {}", log::printable(least.name.tensor), steps[step]));
    }
    drop(least, found);
    drop(*most, found);
  }
  contradictions.tell(log::printable(log), notes);
}

void QuantisedRanks::report(const Steps& steps, const frames::Selection& selection,
                            const frames::Visitor& visit, const std::string& log,
                            frames::Notes& notes) {
  if (none_) return;
  drop_crossed(steps, log, notes);
  if (!visit.quantised) return;
  const std::vector<std::int64_t> log_steps = steps_of(all_, steps, selection);
  std::vector<QuantisedValue> values;
  for (const PrintedSeries& series : all_.all()) {
    if (!is_selected(series.name, selection)) continue;
    const auto& [statistic, recipe, columnwise] = std::get<Quantised>(series.name.statistic);
    values.clear();
    for (std::size_t i = 0; i < series.steps.size(); ++i) {
      const std::int64_t step = steps[series.steps[i]];
      if (!frames::in_steps(selection, step)) continue;
      const Bounds bounds = bounds_of(statistic, series.values[i]);
      values.push_back({step, bounds.low, bounds.high});
    }
    if (values.empty()) continue;
    visit.quantised({series.name.layer, series.name.kind, role_of(series.name, selection), recipe,
                     columnwise, statistic, values, log_steps});
  }
}

}  // namespace halfscope::analyzers::readers::statistics
