// SPDX-License-Identifier: Apache-2.0
// Matrix products with the bits of a Tensor Core: docs/tensor-core.md.
#pragma once

#include "halfscope/number/format.hpp"
#include "halfscope/tensor_core/matrix.hpp"
#include "halfscope/tensor_core/mma.hpp"
#include "halfscope/tensor_core/plan.hpp"

namespace halfscope::tensor_core {

/// Parameters of a product.
struct Gemm {
  Unit unit;
  Accumulator accumulator = Accumulator::binary32;
  Plan plan = {};
  Format a = kBinary16, b = kBinary16;  ///< formats of the elements; supported pairs: chain_of()
  /// Format of D. Sums in binary32 are rounded to it at the end, to nearest even; sums in binary16
  /// in each step.
  Accumulator d = Accumulator::binary32;
  int threads = 0;  ///< 0: one per core. Results are the same for any number
};

/// D = C + A B, where d holds C before and D after. Numbers are stored as float: elements of a and
/// b are values of their formats, elements of d of format_of(accumulator) before and of D's format
/// after. The first slice of the plan starts from C, all others from +0. Every NaN is 0x7FFFFFFF,
/// in binary16 0x7FFF. Each output equals chain() over the plan's steps. d must not overlap a or b.
///
/// Throws std::invalid_argument if an extent is negative, no unit supports the two formats, or a
/// member of the plan is negative.
void gemm(const Gemm& how, const GemmShape& shape, MatrixAt<const float> a, MatrixAt<const float> b,
          MatrixAt<float> d);

}  // namespace halfscope::tensor_core
