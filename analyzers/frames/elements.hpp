// SPDX-License-Identifier: Apache-2.0
// Access to the values of a whole tensor.
#pragma once

#include <cstddef>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::frames {

/// Returns elements [first, first + n) as binary64, which represents them exactly.
std::vector<double> elements(const TensorView& view, std::size_t first, std::size_t n);

/// Returns true if elements [first, first + n) have the same bytes as elements [other, other + n).
bool same_bytes(const TensorView& view, std::size_t first, std::size_t other, std::size_t n);

}  // namespace halfscope::analyzers::frames
