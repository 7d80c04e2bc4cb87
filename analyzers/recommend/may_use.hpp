// SPDX-License-Identifier: Apache-2.0
// Decides if a run in bfloat16 may use FP16.
#pragma once

#include <optional>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// Returns the answer for the analysis's format. Empty if the run is not in bfloat16, or the format
/// has bfloat16's exponent range.
std::optional<MayUse> may_use(const underflow::Analysis& analysis, const Recommendation& advice);

}  // namespace halfscope::analyzers::recommend
