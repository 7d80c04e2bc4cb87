// SPDX-License-Identifier: Apache-2.0
// half and the other number types as scalars of Eigen 3.4: the emulator computes every operation.
//
//     Eigen::Matrix<half, Eigen::Dynamic, Eigen::Dynamic> a, b;
//
// Matrix products (A * B, A * x, x' * A) have the same order on every machine: element (i, j)
// starts as a(i, 0) * b(0, j), rounded; then, for k = 1, 2..., a(i, k) * b(k, j) is rounded, added,
// and the sum rounded. Sums, dot products and norms add the elements in the same way, in storage
// order. Decompositions and triangular solvers keep the order of Eigen's own kernels, and Eigen
// computes s * (A * B) as (s * A) * B.
//
// Scalars convert explicitly: a * half(2), a.cast<float>().
#pragma once

#include <Eigen/Core>
#include <cstdlib>
#include <limits>

#include "halfscope/number/half.hpp"
#include "halfscope/number/half_math.hpp"
#include "halfscope/number/half_stream.hpp"

namespace Eigen {

template <halfscope::Format F>
struct NumTraits<halfscope::Float<F>> : GenericNumTraits<halfscope::Float<F>> {
  using T = halfscope::Float<F>;
  enum {
    RequireInitialization = 0,
    // Some tens of instructions. A high cost also keeps Eigen from unrolling the sums of small
    // fixed-size matrices into trees, a different order, which it does up to a cost of 110.
    AddCost = 60,
    MulCost = 60
  };
  static constexpr int digits10() { return std::numeric_limits<T>::digits10; }
  static constexpr int digits() { return std::numeric_limits<T>::digits; }
  /// The relative difference that isApprox and similar functions allow: the last three bits.
  static constexpr T dummy_precision() { return std::numeric_limits<T>::epsilon() * T(8); }
};

namespace internal {

/// Uniform in [x, y], computed in binary64 because most formats cannot represent RAND_MAX.
template <halfscope::Format F>
struct random_default_impl<halfscope::Float<F>, false, false> {
  using T = halfscope::Float<F>;
  static T run(const T& x, const T& y) {
    const double low = static_cast<double>(x);
    return T(low + (static_cast<double>(y) - low) * (std::rand() / static_cast<double>(RAND_MAX)));
  }
  static T run() { return run(T(-1), T(1)); }
};

template <typename T>
inline constexpr bool is_halfscope_float = false;
template <halfscope::Format F>
inline constexpr bool is_halfscope_float<halfscope::Float<F>> = true;

// The order of sums in Eigen's blocked matrix product depends on sizes, caches and threads. The
// order of its coefficient-based product is fixed, and that product is no slower when an addition
// costs tens of instructions.
template <typename Lhs, typename Rhs>
requires is_halfscope_float<typename Lhs::Scalar>
struct generic_product_impl<Lhs, Rhs, DenseShape, DenseShape, GemmProduct>
    : generic_product_impl<Lhs, Rhs, DenseShape, DenseShape, CoeffBasedProductMode> {
};

template <typename Lhs, typename Rhs>
requires is_halfscope_float<typename Lhs::Scalar>
struct generic_product_impl<Lhs, Rhs, DenseShape, DenseShape, GemvProduct>
    : generic_product_impl<Lhs, Rhs, DenseShape, DenseShape, CoeffBasedProductMode> {
};

}  // namespace internal
}  // namespace Eigen
