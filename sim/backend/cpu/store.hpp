// SPDX-License-Identifier: Apache-2.0
// What convolutions and dense layers share: products by the kind of sum, and what happens to their
// rows on the way into a tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/backend/cpu/memory.hpp"
#include "sim/backend/cpu/product.hpp"

namespace halfscope::sim::backend::cpu {

/// C = A B; sums of products in `sums`: F32, or in sequence in F16 or BF16.
void multiply(Dtype sums, const ProductShape& shape, MatrixAt<const float> a,
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
