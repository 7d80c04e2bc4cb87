// SPDX-License-Identifier: Apache-2.0
// Local gradients as addends: of ranks, and of microbatches. Internal to reduction/.
#pragma once

#include <span>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/terms.hpp"

namespace halfscope::analyzers::reduction {

/// Takes the ranks' tensors of one step, in parts of some million elements. A rank's addend is the
/// sum of its microbatches, rounded to binary32 once. Tensors of other shapes on another rank are
/// left out.
void take_gradients(std::span<const frames::WholeStep> ranks, const frames::Selection& selection,
                    std::span<const Over> asked, const TakeTerms& take);

}  // namespace halfscope::analyzers::reduction
