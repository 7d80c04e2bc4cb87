// SPDX-License-Identifier: Apache-2.0
// The grid of settings that tuning tries.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/replay/step_series.hpp"
#include "halfscope/policy/policy.hpp"

namespace halfscope::analyzers::replay {

/// log2 of two scales. `all`: the largest scale without overflow at any step. `most`: the largest
/// initial scale to try, one binade above the largest without overflow at half of the steps; for
/// short series at most one binade below `all`, like the static scale.
struct Safe {
  int all = 0, most = 0;
};

/// Returns the safe scales; empty if no step shows one: all are zero or not cured by any scale.
std::optional<Safe> safe_scales(const StepSeries& series);

/// The names of the settings that are varied, and the framework's limits.
struct TunedSettings {
  std::string_view initial, interval, floor;
  policy::Limits limits;
  double smallest = 0;  ///< smallest_scale(); no smaller scale is tried
};

TunedSettings knobs_of(const policy::Policy& policy);

/// A policy with one combination of settings.
struct Combination {
  policy::Policy policy;
  double initial = 0, interval = 0;
};

/// Returns the policy with this growth interval and the initial scale 2^initial_log2, or the
/// framework's largest if less; lowers a floor above it. Empty if the framework rejects the scale.
std::optional<policy::Policy> with_settings(const policy::Policy& policy, int initial_log2,
                                            double interval);

/// Returns combinations of initial scales around the safe ones, growth intervals, and lower floors
/// if the policy's own is too high.
std::vector<Combination> combinations(const policy::Policy& policy, const StepSeries& series,
                                      const Safe& safe);

}  // namespace halfscope::analyzers::replay
