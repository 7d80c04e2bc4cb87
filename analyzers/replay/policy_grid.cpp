// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/policy_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/underflow/recommend_options.hpp"
#include "analyzers/underflow/step_facts.hpp"
#include "halfscope/policy/variant.hpp"

namespace halfscope::analyzers::replay {
namespace {

constexpr std::size_t kEnoughSteps = 100;  ///< fewer steps say little of later gradients

/// Returns a policy's text with a setting replaced; unchanged if the policy does not have it.
std::string with(std::string text, std::string_view key, double value) {
  const std::size_t at = text.find(fmt::format(",{}=", key));
  if (at == std::string::npos) return text;
  const std::size_t end = std::min(text.find(',', at + 1), text.size());
  return text.replace(at, end - at, fmt::format(",{}={}", key, value));
}

/// The axes of the grid.
struct Grid {
  std::vector<double> initial, interval;
  std::vector<std::optional<double>> floor;  ///< empty: the policy's own floor

  std::size_t size() const { return initial.size() * interval.size() * floor.size(); }
};

void keep_every_second(std::vector<double>& axis) {
  std::vector<double> kept;
  for (std::size_t i = 0; i < axis.size(); i += 2) kept.push_back(axis[i]);
  axis = std::move(kept);
}

/// Returns log2 of the smallest and of the largest initial scale that a policy accepts.
std::pair<int, int> startable(const policy::Limits& limits, double smallest) {
  int least = std::ilogb(smallest), most = std::numeric_limits<float>::max_exponent - 1;
  if (limits.floor_is_fixed && limits.floor > 0) {
    least = std::max(least, static_cast<int>(std::ceil(std::log2(limits.floor))));
  }
  if (limits.whole_numbers) least = std::max(least, 0);
  if (std::isfinite(limits.ceiling)) {
    most = static_cast<int>(std::floor(std::log2(limits.ceiling)));
  }
  return {std::min(least, most), most};
}

std::vector<double> initial_scales(const TunedSettings& knobs, const Safe& safe) {
  const auto [least, most] = startable(knobs.limits, knobs.smallest);
  const int last = std::clamp(safe.most, least, most);
  const int first = std::clamp(std::min(safe.all - 1, safe.most), least, last);
  const int stride = std::max(1, (last - first + 2) / 10);
  std::vector<double> scales;
  for (int k = first; k < last; k += stride) scales.push_back(std::ldexp(1.0, k));
  scales.push_back(std::ldexp(1.0, last));
  return scales;
}

/// Returns the growth intervals to try: the policy's own first, the usual ones, "never"; and short
/// ones if the run is too short for longer ones, or if infinities of the model drag the scale down.
std::vector<double> intervals(std::optional<double> now, std::size_t steps, bool dragged) {
  constexpr double kNever = std::numeric_limits<std::int32_t>::max();
  std::vector<double> all = {2000, 1000, kNever, 500, 200, 100, 5000};
  for (const std::size_t few : {50, 20, 10}) {
    if (dragged || steps < 100 * few) all.push_back(static_cast<double>(few));
  }
  if (now && std::find(all.begin(), all.end(), *now) == all.end()) all.insert(all.begin(), *now);
  return all;
}

/// Returns the floors to try: the policy's own, and the smallest scale needed if its own is higher.
std::vector<std::optional<double>> floors(const TunedSettings& knobs, const Safe& safe) {
  std::vector<std::optional<double>> all = {std::nullopt};
  const double needed =
      std::max(knobs.smallest, std::ldexp(1.0, std::min(safe.all - 1, safe.most)));
  if (knobs.limits.floor_is_fixed || knobs.floor.empty() || knobs.limits.floor <= needed) {
    return all;
  }
  all.emplace_back(knobs.limits.whole_numbers ? std::floor(needed) : needed);
  return all;
}

/// Returns initial scales around the safe ones, intervals and floors. For long runs drops every
/// second value until the grid needs at most kMostReplayed steps, so that time is bounded.
Grid grid_for(const policy::Policy& policy, const TunedSettings& knobs, const StepSeries& series,
              const Safe& safe) {
  constexpr double kMostReplayed = 2e8;
  Grid grid{initial_scales(knobs, safe),
            intervals(policy::number_of(policy, knobs.interval), series.seen.size(),
                      std::any_of(series.seen.begin(), series.seen.end(), in_model)),
            floors(knobs, safe)};
  const auto too_long = [&] {
    return static_cast<double>(grid.size()) * static_cast<double>(series.seen.size()) >
           kMostReplayed;
  };
  while (too_long() && grid.initial.size() > 1) keep_every_second(grid.initial);
  while (too_long() && grid.interval.size() > 1) keep_every_second(grid.interval);
  return grid;
}

/// Returns the policy with these settings; empty if the framework rejects them. An empty `floor`
/// keeps the policy's own.
std::optional<policy::Policy> set(const std::string& text, const TunedSettings& knobs,
                                  double initial, double interval, std::optional<double> floor) {
  std::string changed = with(with(text, knobs.initial, initial), knobs.interval, interval);
  if (floor) changed = with(std::move(changed), knobs.floor, *floor);
  try {
    policy::Policy made = policy::make(changed);
    if (initial >= policy::limits_of(made).floor) return made;
  } catch (const std::invalid_argument&) {  // the framework rejects the combination
  }
  return std::nullopt;
}

}  // namespace

std::optional<Safe> safe_scales(const StepSeries& series) {
  std::vector<double> largest;
  for (const AttemptMagnitudes& seen : series.seen) {
    if (const double least = at_least(seen); least > 0) largest.push_back(least);
  }
  if (largest.empty()) return std::nullopt;
  const auto log2_of = [](double max_abs) {
    return std::min(underflow::StepMagnitude{magnitude_of(max_abs)}.highest_safe_log2(kBinary16),
                    underflow::kLastLog2Scale);
  };
  const auto middle = largest.begin() + static_cast<std::ptrdiff_t>(largest.size() / 2);
  std::nth_element(largest.begin(), middle, largest.end());
  const int half = log2_of(*middle);
  const int all = log2_of(*std::max_element(largest.begin(), largest.end()));
  int most = half + 1;
  // The end of a run that diverges is no evidence of gradients to come.
  const bool diverges = underflow::diverges(all, in_model(series.seen.back()));
  if (series.seen.size() < kEnoughSteps && !diverges) most = std::min(most, all - 1);
  return Safe{all, most};
}

TunedSettings knobs_of(const policy::Policy& policy) {
  const policy::Info& info = policy::info_of(policy);
  TunedSettings knobs{info.initial, info.interval, info.floor, policy::limits_of(policy),
                      smallest_scale(policy)};
  // OpenSeq2Seq has no setting for the initial scale; its ceiling is the initial scale.
  const auto* backoff = policy::get_if<policy::Os2sBackoff>(policy);
  if (backoff != nullptr && !backoff->initial_scale) knobs.initial = info.ceiling;
  return knobs;
}

std::optional<policy::Policy> with_settings(const policy::Policy& policy, int initial_log2,
                                            double interval) {
  const TunedSettings knobs = knobs_of(policy);
  const auto [least, most] = startable(knobs.limits, knobs.smallest);
  if (initial_log2 < least) return std::nullopt;
  const double initial = std::ldexp(1.0, std::min(initial_log2, most));
  const bool in_the_way = !knobs.floor.empty() && knobs.limits.floor > initial;
  return set(policy::text_of(policy), knobs, initial, interval,
             in_the_way ? std::optional(initial) : std::nullopt);
}

std::vector<Combination> combinations(const policy::Policy& policy, const StepSeries& series,
                                      const Safe& safe) {
  const TunedSettings knobs = knobs_of(policy);
  const Grid grid = grid_for(policy, knobs, series, safe);
  const std::string text = policy::text_of(policy);
  std::vector<Combination> all;
  for (const double initial : grid.initial) {
    for (const double interval : grid.interval) {
      for (const std::optional<double> floor : grid.floor) {
        const auto made = set(text, knobs, initial, interval, floor);
        if (made) all.push_back({*made, initial, interval});
      }
    }
  }
  return all;
}

}  // namespace halfscope::analyzers::replay
