// SPDX-License-Identifier: Apache-2.0
// Functions that convolutions and dense layers share: products with each kind of sum, and the
// rounding of their rows into a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/tensor_core/gemm.hpp"
#include "sim/backend/cpu/memory.hpp"
#include "sim/backend/cpu/product.hpp"

namespace halfscope::sim::backend::cpu {

/// The precision of the sums of one product. By default binary32, computed by Eigen.
struct Sums {
  Dtype narrow = Dtype::f32;  ///< F16, BF16: sequential sums, each addition rounded to it
  std::optional<tensor_core::Gemm> tensor_core = {};  ///< one chain of its steps, on one thread

  bool plain() const { return narrow == Dtype::f32 && !tensor_core; }
};

/// Adds A B to C, with narrow sums or a Tensor Core's, each element in order of the depth. A
/// product may be computed in pieces along its depth: if the cuts are at multiples of 16, the bits
/// are those of the whole product.
void accumulate(const Sums& sums, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
                MatrixAt<float> c);

/// Writes C = A B, with any kind of sum.
void multiply(const Sums& sums, const ProductShape& shape, MatrixAt<const float> a,
              MatrixAt<const float> b, MatrixAt<float> c);

/// Returns the `count` values of a bias; null for an empty tensor. Throws std::invalid_argument.
const float* bias_of(const Tensor& bias, std::int64_t count);

/// Adds the bias to each row of sums, unless `bias` is null, and rounds the results to `dtype`.
void finish(MatrixAt<float> sums, std::int64_t rows, std::int64_t columns, const float* bias,
            Dtype dtype);

/// Returns the transpose of a (rows, columns) matrix.
std::vector<float> transposed(const float* from, std::int64_t rows, std::int64_t columns);

/// Writes sums into a gradient, or adds them if `add` is true; each value is rounded once. Runs on
/// the calling thread.
void store_gradient(const std::vector<float>& sums, bool add, Tensor& to);

}  // namespace halfscope::sim::backend::cpu
