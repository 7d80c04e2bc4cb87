// SPDX-License-Identifier: Apache-2.0
// Eigen's products for one instruction set. Each source file that is compiled for an instruction
// set includes this file once, after it defines HALFSCOPE_PRODUCT_SET, HALFSCOPE_PRODUCT_NAME,
// HALFSCOPE_EIGEN and, if the numbers are not float, HALFSCOPE_PRODUCT_NUMBER. HALFSCOPE_EIGEN
// renames the namespace Eigen: otherwise the linker would merge the templates of all sets.
#pragma once

#define EIGEN_DONT_PARALLELIZE  // Eigen's threads would change the order of sums
#define EIGEN_MPL2_ONLY
#define EIGEN_GEMM_TO_COEFFBASED_THRESHOLD 0  // else small products depend on alignment
#define Eigen HALFSCOPE_EIGEN                 // NOLINT(readability-identifier-naming)
#include <Eigen/Core>

#ifdef HALFSCOPE_PRODUCT_NUMBER
#include "sim/backend/cpu/product_number-inl.hpp"
#else
#define HALFSCOPE_PRODUCT_NUMBER float
#endif
#include "sim/backend/cpu/product.hpp"

namespace halfscope::sim::backend::cpu::HALFSCOPE_PRODUCT_SET {
namespace {

using Scalar = HALFSCOPE_PRODUCT_NUMBER;
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Stride = Eigen::OuterStride<Eigen::Dynamic>;
using In = Eigen::Map<const Matrix, Eigen::Unaligned, Stride>;
using Out = Eigen::Map<Matrix, Eigen::Unaligned, Stride>;

In in(MatrixAt<const float> m, std::int64_t rows, std::int64_t columns) {
  return In(reinterpret_cast<const Scalar*>(m.data), rows, columns, Stride(m.stride));
}

Out out(MatrixAt<float> m, const ProductShape& s) {
  return Out(reinterpret_cast<Scalar*>(m.data), s.rows, s.columns, Stride(m.stride));
}

void plain(const ProductShape& s, MatrixAt<const float> a, MatrixAt<const float> b,
           MatrixAt<float> c) {
  out(c, s).noalias() = in(a, s.rows, s.depth) * in(b, s.depth, s.columns);
}

void right_transposed(const ProductShape& s, MatrixAt<const float> a, MatrixAt<const float> b,
                      MatrixAt<float> c) {
  out(c, s).noalias() = in(a, s.rows, s.depth) * in(b, s.columns, s.depth).transpose();
}

void add_left_transposed(const ProductShape& s, MatrixAt<const float> a, MatrixAt<const float> b,
                         MatrixAt<float> c) {
  out(c, s).noalias() += in(a, s.depth, s.rows).transpose() * in(b, s.depth, s.columns);
}

}  // namespace

/// Fixes the cache sizes, which decide how Eigen divides sums. Eigen would query the processor.
ProductKernels kernels() {
  Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 4 << 20);
  return {HALFSCOPE_PRODUCT_NAME, plain, right_transposed, add_left_transposed};
}

}  // namespace halfscope::sim::backend::cpu::HALFSCOPE_PRODUCT_SET
