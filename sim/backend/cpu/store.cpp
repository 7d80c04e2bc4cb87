// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cpu/store.hpp"

#include <algorithm>

#include "sim/backend/check_shapes.hpp"

namespace halfscope::sim::backend::cpu {

void accumulate(const Sums& sums, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
                MatrixAt<float> c) {
  if (!sums.tensor_core) return accumulate_narrow(sums.narrow, shape, a, b, c);
  tensor_core::gemm(*sums.tensor_core, {shape.rows, shape.columns, shape.depth},
                    {a.data, a.row, a.column}, {b.data, b.stride, 1}, {c.data, c.stride, 1});
}

void multiply(const Sums& sums, const ProductShape& shape, MatrixAt<const float> a,
              MatrixAt<const float> b, MatrixAt<float> c) {
  if (sums.plain()) return product_kernels().plain(shape, a, b, c);
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    std::fill_n(c.data + i * c.stride, shape.columns, 0.0f);
  }
  accumulate(sums, shape, {a.data, a.stride, 1}, b, c);
}

const float* bias_of(const Tensor& bias, std::int64_t count) {
  if (!bias) return nullptr;
  require_bias(bias, count);
  return data(bias);
}

void finish(MatrixAt<float> sums, std::int64_t rows, std::int64_t columns, const float* bias,
            Dtype dtype) {
  if (bias != nullptr) {
    for (std::int64_t i = 0; i < rows; ++i) {
      float* row = sums.data + i * sums.stride;
      for (std::int64_t j = 0; j < columns; ++j) row[j] += bias[j];
    }
  }
  if (sums.stride == columns) return round_values(dtype, sums.data, rows * columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    round_values(dtype, sums.data + i * sums.stride, columns);
  }
}

std::vector<float> transposed(const float* from, std::int64_t rows, std::int64_t columns) {
  std::vector<float> to(static_cast<std::size_t>(rows * columns));
  constexpr std::int64_t kBlock = 16;  // floats in a cache line
  for (std::int64_t j = 0; j < columns; j += kBlock) {
    const std::int64_t end = std::min(columns, j + kBlock);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t l = j; l < end; ++l) {
        to[static_cast<std::size_t>(l * rows + i)] = from[i * columns + l];
      }
    }
  }
  return to;
}

void store_gradient(const std::vector<float>& sums, bool add, Tensor& to) {
  float* values = data(to);
  const auto count = static_cast<std::int64_t>(sums.size());
  if (add) {
    for (std::int64_t i = 0; i < count; ++i) values[i] += sums[static_cast<std::size_t>(i)];
  } else {
    std::copy_n(sums.data(), count, values);
  }
  round_values(to.dtype, values, count);
}

}  // namespace halfscope::sim::backend::cpu
