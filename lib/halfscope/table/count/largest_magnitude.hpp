// SPDX-License-Identifier: Apache-2.0
// The largest magnitude without a table, at the speed of memory.
#pragma once

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// Returns the largest magnitude, exactly. NaN if any element is NaN, else infinity if any is
/// infinite; 0 for no elements.
double largest_magnitude(const TensorView& tensor);

}  // namespace halfscope
