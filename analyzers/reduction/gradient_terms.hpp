// SPDX-License-Identifier: Apache-2.0
// Local gradients as addends of sums over ranks and over microbatches. Internal to reduction/.
#pragma once

#include <set>
#include <span>
#include <string>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/terms.hpp"

namespace halfscope::analyzers::reduction {

/// Calls `take` with the ranks' tensors of one step, in parts of 2^18 elements. A rank's addend is
/// the sum of its microbatches, rounded to binary32 once. A tensor is summed over the ranks that
/// have it. Returns the tensors whose shapes differ between ranks: they are not summed over ranks.
std::set<std::string> take_gradients(std::span<const frames::WholeStep> ranks,
                                     const frames::Selection& selection,
                                     std::span<const Over> asked, const TakeTerms& take);

}  // namespace halfscope::analyzers::reduction
