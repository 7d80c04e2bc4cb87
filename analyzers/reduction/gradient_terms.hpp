// SPDX-License-Identifier: Apache-2.0
// Local gradients as addends: of ranks, and of microbatches. Internal to reduction/.
#pragma once

#include <set>
#include <span>
#include <string>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/terms.hpp"

namespace halfscope::analyzers::reduction {

/// Takes the ranks' tensors of one step, in parts of some million elements. A rank's addend is the
/// sum of its microbatches, rounded to binary32 once. A tensor is summed over the ranks that have
/// it. Returns those that have other shapes on other ranks: they are not summed.
std::set<std::string> take_gradients(std::span<const frames::WholeStep> ranks,
                                     const frames::Selection& selection,
                                     std::span<const Over> asked, const TakeTerms& take);

}  // namespace halfscope::analyzers::reduction
