// SPDX-License-Identifier: Apache-2.0
// Withdraws the recommended scale of a run that diverges.
#pragma once

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// Removes the static scale and sets `no_scale` to NoScale::diverges if the gradients are as large
/// as in a run that diverges (underflow::diverges()).
void refuse_divergence(Recommendation& advice, const overflow::OverflowFindings& overflow);

}  // namespace halfscope::analyzers::recommend
