// SPDX-License-Identifier: Apache-2.0
// The parts of advice from replays: the scale that a step of a series needs, the wording, resets of
// the run's own scale, and the grid of settings that tuning tries.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/replay/policy_study.hpp"

namespace halfscope::analyzers::replay {

/// Returns a scale as text: "65536", "2^-4", "0.3".
std::string scale_words(double scale);
/// Returns a number of steps as text: "1 step", "12 steps".
std::string steps_words(std::size_t count);

/// Returns a setting by its framework's names, such as "delayed_shift (hysteresis in the
/// configuration file)".
std::string setting_words(const policy::Policy& policy, std::string_view setting);

/// Returns the smallest normal number of the arithmetic in which a policy's framework keeps its
/// scale. For smaller scales 1 / scale, which gradients are multiplied by, is not finite.
double smallest_scale(const policy::Policy& policy);

std::size_t index_of(const StepSeries& series, std::int64_t step);

/// Returns true if a smaller scale might have helped at a step: its gradients may be finite.
bool by_scale(const StepSeries& series, std::int64_t step);

/// The largest power of two that may avoid overflow at a step. If not `sure`, it is an upper bound:
/// an infinity shows only that its scale was too large, and a partly recorded magnitude
/// (AttemptMagnitudes::partial) is a lower bound.
struct Holds {
  double power = INFINITY;
  bool sure = true;
  bool at_least = false;  ///< not sure, because a finite magnitude may have been larger

  std::string text() const;
};
Holds holds(const StepSeries& series, std::int64_t step);

/// Returns a lower bound of the scales that overflows alone can cause in a trace. Smaller scales
/// are caused by infinities or NaN at every scale.
double least_by_overflow(const Trace& trace, const StepSeries& series);

/// Returns the first step at which the recorded scale is reset, as if it was missing in the
/// checkpoint: it rises by more than the run's policy allows, or falls to its initial value without
/// an overflow. Empty if there is none.
std::optional<Pitfall> scale_reset(const StepSeries& series);

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
