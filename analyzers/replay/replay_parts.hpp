// SPDX-License-Identifier: Apache-2.0
// Replay of policies that keep a scale for every tensor or layer, and what all replays end with.
#pragma once

#include "analyzers/replay/replay.hpp"
#include "halfscope/policy/als.hpp"
#include "halfscope/policy/transformer_engine.hpp"

namespace halfscope::analyzers::replay {

/// Delayed scaling of FP8, one object a tensor. `trace` has its policy, name and text. Its
/// `overflow` are steps where a value is beyond the format's largest finite number: saturated.
void replay_tensors(const policy::TeDelayed& policy, const StepSeries& series, Trace& trace);

/// Adaptive loss scaling, one object a layer, in backward order; what a layer's tensors were at
/// steps without tables is what they were at the recorded step before. Its `overflow` are steps
/// where a gradient reaches a layer at a scale that is too large for it.
void replay_layers(const policy::Als& policy, const StepSeries& series, Trace& trace);

/// Appends where the scale changes.
void add_scale(ScaleRuns& runs, std::size_t index, double scale);

/// Sets the flushed shares of a trace whose scales are known.
void add_flushed(Trace& trace, const StepSeries& series);

}  // namespace halfscope::analyzers::replay
