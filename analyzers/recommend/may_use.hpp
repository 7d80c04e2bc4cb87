// SPDX-License-Identifier: Apache-2.0
// Whether a run in bfloat16 may use FP16.
#pragma once

#include <optional>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// The answer for the analysis's format; empty where the run is none in bfloat16, or the format has
/// its range.
std::optional<MayUse> may_use(const underflow::Analysis& analysis, const Recommendation& advice);

}  // namespace halfscope::analyzers::recommend
