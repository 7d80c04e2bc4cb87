// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices on one thread, and sums of products that are kept in 16 bits.
//
// In binary32 Eigen multiplies, compiled for AVX2 with FMA and, for processors that lack these,
// with both in software, which is slower; which one is chosen at run time. Its blocking is set for
// one size of caches, so the bits of a product depend on the shapes and on nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "halfscope/table/count/count.hpp"

namespace halfscope::sim::backend::cpu {

/// The extents of C (rows x columns), and what is summed over.
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

/// The best of this processor, or of what HALFSCOPE_TARGET leaves of it.
const ProductKernels& product_kernels();
/// All that this processor can run, the best last.
std::span<const ProductKernels> all_product_kernels();
std::string eigen_version();

/// A matrix read in any direction: element (i, j) is at data[i * row + j * column].
struct StridedAt {
  const float* data;
  std::int64_t row, column;
};

/// C += A B, element by element in sequence along the depth: c = round(a * b + c), each fused
/// multiply-add rounded once (IEEE 754-2019, 5.4.1), to nearest, to `dtype`: F16 or BF16, of which
/// all elements are values.
void accumulate_narrow(Dtype dtype, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
                       MatrixAt<float> c);

}  // namespace halfscope::sim::backend::cpu
