// SPDX-License-Identifier: Apache-2.0
// Addends of sums, as a log's whole tensors hold them. Internal to reduction/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "analyzers/reduction/reductions.hpp"

namespace halfscope::analyzers::reduction {

/// Addends of the elements [first, first + n) of `of`; they are valid during a call.
struct Terms {
  std::string name;  ///< of the tensor
  Sum sum = Sum::gradient;
  Over over = Over::ranks;
  std::vector<std::span<const float>> addends = {};  ///< each of n elements
  std::size_t first = 0, of = 0;
};
using TakeTerms = std::function<void(const Terms&)>;

}  // namespace halfscope::analyzers::reduction
