// SPDX-License-Identifier: Apache-2.0
// Runs that diverge: the scale that their gradients ask for is no recommendation.
#pragma once

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// Takes the scale back that gradients of a run that diverges ask for (underflow::diverges());
/// `no_scale` is diverges then.
void refuse_divergence(Recommendation& advice, const overflow::OverflowFindings& overflow);

}  // namespace halfscope::analyzers::recommend
