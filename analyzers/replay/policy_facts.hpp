// SPDX-License-Identifier: Apache-2.0
// The scale that a step of a series needs, and the wording of advice.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "analyzers/replay/replay.hpp"
#include "halfscope/policy/policy.hpp"

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

}  // namespace halfscope::analyzers::replay
