// SPDX-License-Identifier: Apache-2.0
// Whole matrix products as a Tensor Core adds them, bit for bit: docs/tensor-core.md.
#pragma once

#include "halfscope/number/format.hpp"
#include "halfscope/tensor_core/matrix.hpp"
#include "halfscope/tensor_core/mma.hpp"
#include "halfscope/tensor_core/plan.hpp"

namespace halfscope::tensor_core {

/// How a product is computed.
struct Gemm {
  Unit unit;
  Accumulator accumulator = Accumulator::binary32;
  Plan plan = {};
  Format a = kBinary16, b = kBinary16;  ///< of the elements: those of chain_of()
  /// The format of D, rounded to nearest even at the end where sums are of binary32; sums of
  /// binary16 are rounded in each step anyway.
  Accumulator d = Accumulator::binary32;
  int threads = 0;  ///< 0: as many as there are cores. Results are the same for any number
};

/// D = C + A B, where d holds C before and D after. Numbers are kept as float: elements of a and b
/// are values of their formats, those of d of format_of(accumulator) before and of D's after. The
/// first slice of the plan begins at C, others at +0. Every NaN is 0x7FFFFFFF, in binary16 0x7FFF.
/// Each output is what chain() gives for the plan's steps. d must not overlap a or b.
///
/// Throws std::invalid_argument where an extent is negative, no unit has the two formats, or the
/// plan has a negative member.
void gemm(const Gemm& how, const GemmShape& shape, MatrixAt<const float> a, MatrixAt<const float> b,
          MatrixAt<float> d);

}  // namespace halfscope::tensor_core
