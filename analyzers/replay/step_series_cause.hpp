// SPDX-License-Identifier: Apache-2.0
// Which infinities of a series a loss scale may have made.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "analyzers/replay/step_series.hpp"

namespace halfscope::analyzers::replay {

/// Infinities of a run that says it computed in wide formats, with the scale of their step: those
/// that a cast to FP16 by hand may have made. By index, ascending.
using MaybeCast = std::vector<std::pair<std::size_t, double>>;

/// Where finite gradients nearby come close to what FP16 holds at that scale, an infinity is taken
/// as one of FP16: a wide format would have had no reason to overflow just there.
void find_casts(StepSeries& series, const MaybeCast& maybe);

/// Where lowering the scale by far did not help although gradients nearby leave much room, no scale
/// is to blame: overflow_cause.hpp.
void find_no_cure(StepSeries& series);

}  // namespace halfscope::analyzers::replay
