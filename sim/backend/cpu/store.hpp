// SPDX-License-Identifier: Apache-2.0
// What convolutions and dense layers share: products by the kind of sum, and what happens to their
// rows on the way into a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/tensor_core/gemm.hpp"
#include "sim/backend/cpu/memory.hpp"
#include "sim/backend/cpu/product.hpp"

namespace halfscope::sim::backend::cpu {

/// How the sums of one product are kept: in binary32, by Eigen, unless a member says otherwise.
struct Sums {
  Dtype narrow = Dtype::f32;  ///< F16, BF16: in sequence, each rounded to it
  std::optional<tensor_core::Gemm> tensor_core = {};  ///< one chain of its steps; of one thread

  bool plain() const { return narrow == Dtype::f32 && !tensor_core; }
};

/// C += A B, element by element in sequence along the depth: narrow sums, or a Tensor Core's. A
/// product that is cut at a multiple of 16 along its depth has the bits of the whole one.
void accumulate(const Sums& sums, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
                MatrixAt<float> c);

/// C = A B, of any sums.
void multiply(const Sums& sums, const ProductShape& shape, MatrixAt<const float> a,
              MatrixAt<const float> b, MatrixAt<float> c);

/// The values of a bias of `count` values; null where it is empty. Throws std::invalid_argument.
const float* bias_of(const Tensor& bias, std::int64_t count);

/// Adds the bias, where there is one, to rows of sums and rounds them.
void finish(MatrixAt<float> sums, std::int64_t rows, std::int64_t columns, const float* bias,
            Dtype dtype);

/// (rows, columns) to (columns, rows).
std::vector<float> transposed(const float* from, std::int64_t rows, std::int64_t columns);

/// Sums into a gradient, which is added where `add`; one rounding. On the calling thread.
void store_gradient(const std::vector<float>& sums, bool add, Tensor& to);

}  // namespace halfscope::sim::backend::cpu
