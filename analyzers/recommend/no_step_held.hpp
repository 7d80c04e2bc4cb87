// SPDX-License-Identifier: Apache-2.0
// A recommended scale that no recorded step confirms.
#pragma once

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// Whether infinities hide the largest magnitude of every recorded step: the static scale is an
/// upper bound, at which all of them may overflow.
bool no_step_held(const Recommendation& advice);

}  // namespace halfscope::analyzers::recommend
