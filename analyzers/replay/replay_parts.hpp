// SPDX-License-Identifier: Apache-2.0
// Replays policies with one scale per tensor or layer, and completes traces.
#pragma once

#include "analyzers/replay/replay.hpp"
#include "halfscope/policy/als.hpp"
#include "halfscope/policy/transformer_engine.hpp"

namespace halfscope::analyzers::replay {

/// Replays FP8 delayed scaling, with one policy object per tensor. `trace` has its policy and name.
/// Its `overflow` has the steps with a value beyond the format's range, which saturates.
void replay_tensors(const policy::TeDelayed& policy, const StepSeries& series, Trace& trace);

/// Replays adaptive loss scaling, with one policy object per layer, in backward order. For steps
/// without histograms uses a layer's last recorded step before them. The trace's `overflow` has the
/// steps at which a gradient reaches a layer at a scale that is too large for it.
void replay_layers(const policy::Als& policy, const StepSeries& series, Trace& trace);

/// Appends (index, scale) if the scale differs from the last one.
void add_scale(ScaleRuns& runs, std::size_t index, double scale);

/// Sets the flushed shares of a trace from its scales.
void add_flushed(Trace& trace, const StepSeries& series);

}  // namespace halfscope::analyzers::replay
