// SPDX-License-Identifier: Apache-2.0
// Runs that diverge: the scale that their gradients ask for is no recommendation.
#pragma once

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// The reason of a Recommendation without a scale because the run diverges.
inline constexpr const char* kDiverges = "diverges";

/// Takes the scale back that gradients of a run that diverges ask for (too_small()); `reason` is
/// kDiverges then.
void refuse_divergence(Recommendation& advice, const overflow::OverflowFindings& overflow);

}  // namespace halfscope::analyzers::recommend
