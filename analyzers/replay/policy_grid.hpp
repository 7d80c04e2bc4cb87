// SPDX-License-Identifier: Apache-2.0
// The settings that tuning tries.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/replay/step_series.hpp"
#include "halfscope/policy/policy.hpp"

namespace halfscope::analyzers::replay {

/// log2 of the largest scales that hold the largest gradient of all steps, and of the largest to
/// begin with: a binade above what holds half of the steps, and for short series with a binade to
/// spare, as the static scale has.
struct Safe {
  int all = 0, most = 0;
};

/// Empty where no step tells a scale: all are zero, or have what no scale cures.
std::optional<Safe> safe_scales(const StepSeries& series);

/// The names of what is varied, and what the framework takes.
struct Knobs {
  std::string_view initial, interval, floor;
  policy::Limits limits;
  double smallest = 0;  ///< smallest_scale(): none below is tried
};

Knobs knobs_of(const policy::Policy& policy);

/// A policy with settings that are tried.
struct Combination {
  policy::Policy policy;
  double initial = 0, interval = 0;
};

/// The policy with another initial scale, 2^initial_log2 or the largest that its framework takes,
/// and growth interval; a floor above it is lowered. Empty where the framework takes no such scale.
std::optional<policy::Policy> with_settings(const policy::Policy& policy, int initial_log2,
                                            double interval);

/// Of initial scales around the safe ones, growth intervals, and floors where one is in the way.
std::vector<Combination> combinations(const policy::Policy& policy, const StepSeries& series,
                                      const Safe& safe);

}  // namespace halfscope::analyzers::replay
