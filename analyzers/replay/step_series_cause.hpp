// SPDX-License-Identifier: Apache-2.0
// Decides which infinities of a series a loss scale may have made.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "analyzers/replay/step_series.hpp"

namespace halfscope::analyzers::replay {

/// Infinities that an explicit cast to FP16 may have made in a run that computed in wide formats:
/// (index of the step, its scale), ascending.
using MaybeCast = std::vector<std::pair<std::size_t, double>>;

/// Attributes an infinity to FP16 if finite gradients of nearby steps come close to FP16's limit at
/// that scale: a wide format has no reason to overflow just there.
void find_casts(StepSeries& series, const MaybeCast& maybe);

/// Marks infinities as independent of the scale if lowering it by far did not help, although
/// gradients of nearby steps are far below overflow: overflow_cause.hpp.
void find_no_cure(StepSeries& series);

}  // namespace halfscope::analyzers::replay
