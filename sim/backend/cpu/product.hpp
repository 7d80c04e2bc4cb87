// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices on one thread, and sums of products that are kept in 16 bits.
//
// In binary32 Eigen multiplies. It is compiled twice: for AVX2 with FMA, and for other processors
// with both emulated in software, which is slower. The version is chosen at run time. The blocking
// is fixed for one size of caches, so the bits of a product depend on the shapes alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "halfscope/table/count/count.hpp"

namespace halfscope::sim::backend::cpu {

/// The extents of the result (rows x columns), and the length of its sums.
struct ProductShape {
  std::int64_t rows, columns, depth;
};

/// A matrix in memory: element (i, j) is at data[i * stride + j].
template <class T>
struct MatrixAt {
  T* data;
  std::int64_t stride;
};

using Product = void (*)(const ProductShape&, MatrixAt<const float> a, MatrixAt<const float> b,
                         MatrixAt<float> c);

struct ProductKernels {
  std::string_view name;        ///< "AVX2"
  Product plain;                ///< C = A B
  Product right_transposed;     ///< C = A B^T
  Product add_left_transposed;  ///< C += A^T B
};

/// Returns the best kernels that this processor has and HALFSCOPE_TARGET allows.
const ProductKernels& product_kernels();
/// Returns all kernels that this processor can run, the best last.
std::span<const ProductKernels> all_product_kernels();
std::string eigen_version();

/// A matrix with any strides: element (i, j) is at data[i * row + j * column].
struct StridedAt {
  const float* data;
  std::int64_t row, column;
};

/// Adds A B to C. Each element is summed in order of the depth: c = round(a * b + c), a fused
/// multiply-add rounded once (IEEE 754-2019, 5.4.1) to nearest in `dtype`, F16 or BF16. All
/// elements must be values of `dtype`.
void accumulate_narrow(Dtype dtype, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
                       MatrixAt<float> c);

}  // namespace halfscope::sim::backend::cpu
