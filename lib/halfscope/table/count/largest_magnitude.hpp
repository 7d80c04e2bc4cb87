// SPDX-License-Identifier: Apache-2.0
// The largest magnitude alone: at the speed of memory, where no table is wanted.
#pragma once

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// Infinity and NaN are themselves, and NaN is larger than all. 0 of no elements. Exact.
double largest_magnitude(const TensorView& tensor);

}  // namespace halfscope
