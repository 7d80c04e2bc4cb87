// SPDX-License-Identifier: Apache-2.0
// The values of a whole tensor.
#pragma once

#include <cstddef>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::frames {

/// Elements [first, first + n) as binary64, exactly.
std::vector<double> elements(const TensorView& view, std::size_t first, std::size_t n);

/// True if elements [first, first + n) have the bytes of elements [other, other + n).
bool same_bytes(const TensorView& view, std::size_t first, std::size_t other, std::size_t n);

}  // namespace halfscope::analyzers::frames
