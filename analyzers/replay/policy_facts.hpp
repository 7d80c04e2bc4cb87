// SPDX-License-Identifier: Apache-2.0
// What a step of a series asks of the scale, and how advice words it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "analyzers/replay/replay.hpp"
#include "halfscope/policy/policy.hpp"

namespace halfscope::analyzers::replay {

/// A scale in a sentence: "65536", "2^-4", "0.3".
std::string scale_words(double scale);
/// "1 step", "12 steps"
std::string steps_words(std::size_t count);

/// A setting by the names its framework has for it: "hysteresis"; "delayed_shift (hysteresis in the
/// configuration file)".
std::string setting_words(const policy::Policy& policy, std::string_view setting);

/// The smallest normal number of the arithmetic that a policy's framework keeps its scale in; of
/// smaller ones 1/S, by which gradients are multiplied again, is no finite number.
double smallest_scale(const policy::Policy& policy);

std::size_t index_of(const StepSeries& series, std::int64_t step);

/// Whether a smaller scale would have helped at a step: its gradients are finite, or may be.
bool by_scale(const StepSeries& series, std::int64_t step);

/// The largest power of two that may have held a step's gradients, and whether it surely would
/// have: an infinity tells no more than that half its scale is not above what it needed, and a
/// magnitude that is the least that it can be (Seen::partial) bounds it as well.
struct Holds {
  double power = INFINITY;
  bool sure = true;
  bool at_least = false;  ///< not sure, of a finite magnitude that may have been larger

  std::string text() const;
};
Holds holds(const StepSeries& series, std::int64_t step);

/// What overflow by the scale lowers a trace's scale to, at least: smaller ones come of steps that
/// have infinities or NaN at every scale.
double least_by_overflow(const Trace& trace, const StepSeries& series);

}  // namespace halfscope::analyzers::replay
