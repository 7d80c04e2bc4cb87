// SPDX-License-Identifier: Apache-2.0
// Other sums of the same products, for comparison with a Tensor Core.
#pragma once

#include <cstdint>

#include "halfscope/tensor_core/matrix.hpp"

namespace halfscope::tensor_core {

enum class ReferenceSum : std::uint8_t {
  sequential32,  ///< from C on, k ascending; product and sum rounded to binary32 (products of
                 ///< binary16 and FP8 are exact)
  pairwise32,    ///< products and sums in binary32: halves of k, recursively (a longer one first);
                 ///< C is added last
  sequential16,  ///< from C on, k ascending: fused multiply-adds in binary16, for binary16 and FP8
  exact          ///< C + A B rounded once to binary32
};

/// D = C + A B in the given order, each rounding to nearest even; d holds C before and D after.
/// Every NaN is 0x7FFFFFFF. threads: 0 for one per core; results are the same for any number. d
/// must not overlap a or b. Throws std::invalid_argument if an extent is negative.
void reference_gemm(ReferenceSum sum, const GemmShape& shape, MatrixAt<const float> a,
                    MatrixAt<const float> b, MatrixAt<float> d, int threads = 0);

}  // namespace halfscope::tensor_core
