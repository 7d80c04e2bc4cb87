// SPDX-License-Identifier: Apache-2.0
// The functions of <cmath> that IEEE 754 defines exactly, for half and the other number types.
// Argument-dependent lookup finds them; names and meanings are the same as there.
#pragma once

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/cuda_half.hpp"
#include "halfscope/number/half.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/nan.hpp"
#include "halfscope/number/neighbour.hpp"
#include "halfscope/number/remainder.hpp"

namespace halfscope {
namespace detail {

template <Format F>
HALFSCOPE_HD constexpr Float<F> number(std::uint64_t bits) {
  return Float<F>::from_bits(static_cast<typename Float<F>::Bits>(bits));
}

template <Format F>
HALFSCOPE_HD constexpr Float<F> integral(Float<F> x, Rounding rounding) {
  return number<F>(round_to_integral(F, x.bits(), {.rounding = rounding}).bits);
}

}  // namespace detail

// Arithmetic, rounded once.

template <Format F>
HALFSCOPE_HD constexpr Float<F> fma(Float<F> x, Float<F> y, Float<F> z) {
  return detail::number<F>(fused_multiply_add(F, x.bits(), y.bits(), z.bits()).bits);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> sqrt(Float<F> x) {
  return detail::number<F>(square_root(F, x.bits()).bits);
}
/// x - n * y, where n is the integer nearest to x / y, ties to even. Exact.
template <Format F>
HALFSCOPE_HD constexpr Float<F> remainder(Float<F> x, Float<F> y) {
  return detail::number<F>(remainder(F, x.bits(), y.bits()).bits);
}
/// x times 2^n.
template <Format F>
HALFSCOPE_HD constexpr Float<F> ldexp(Float<F> x, int n) {
  return detail::number<F>(scale_b(F, x.bits(), n).bits);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> logb(Float<F> x) {
  return detail::number<F>(log_b(F, x.bits()).bits);
}

// Rounding to an integer of the same format.

template <Format F>
HALFSCOPE_HD constexpr Float<F> floor(Float<F> x) {
  return detail::integral(x, Rounding::downward);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> ceil(Float<F> x) {
  return detail::integral(x, Rounding::upward);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> trunc(Float<F> x) {
  return detail::integral(x, Rounding::toward_zero);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> round(Float<F> x) {
  return detail::integral(x, Rounding::ties_to_away);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> rint(Float<F> x) {
  return detail::integral(x, Rounding::ties_to_even);
}

// Operations on the encoding. The first four round nothing and accept NaNs unchanged.

template <Format F>
HALFSCOPE_HD constexpr Float<F> abs(Float<F> x) {
  return detail::number<F>(absolute(F, x.bits()));
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> fabs(Float<F> x) {
  return abs(x);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> copysign(Float<F> x, Float<F> sign) {
  return detail::number<F>(copy_sign(F, x.bits(), sign.bits()));
}
template <Format F>
HALFSCOPE_HD constexpr bool signbit(Float<F> x) {
  return (x.bits() & F.sign_mask()) != 0;
}

template <Format F>
HALFSCOPE_HD constexpr bool isnan(Float<F> x) {
  return is_nan(F, x.bits());
}
template <Format F>
HALFSCOPE_HD constexpr bool isinf(Float<F> x) {
  return is_infinity(F, x.bits());
}
template <Format F>
HALFSCOPE_HD constexpr bool isfinite(Float<F> x) {
  return (x.bits() & F.magnitude_mask()) <= F.largest_finite();
}
template <Format F>
HALFSCOPE_HD constexpr bool isnormal(Float<F> x) {
  return isfinite(x) && (x.bits() & F.magnitude_mask()) > F.fraction_mask();
}

// Functions of two numbers.

/// If one operand is a quiet NaN, returns the other; -0 is below +0 (IEEE 754-2019, 9.6).
template <Format F>
HALFSCOPE_HD constexpr Float<F> fmin(Float<F> x, Float<F> y) {
  return detail::number<F>(minimum_number(F, x.bits(), y.bits()).bits);
}
template <Format F>
HALFSCOPE_HD constexpr Float<F> fmax(Float<F> x, Float<F> y) {
  return detail::number<F>(maximum_number(F, x.bits(), y.bits()).bits);
}
/// As std::min: x unless y < x.
template <Format F>
HALFSCOPE_HD constexpr Float<F> min(Float<F> x, Float<F> y) {
  return y < x ? y : x;
}
/// As std::max: x unless x < y.
template <Format F>
HALFSCOPE_HD constexpr Float<F> max(Float<F> x, Float<F> y) {
  return x < y ? y : x;
}
/// The next number after x toward y; y if they are equal.
template <Format F>
HALFSCOPE_HD constexpr Float<F> nextafter(Float<F> x, Float<F> y) {
  if (isnan(x) || isnan(y)) return x + y;
  if (x == y) return y;
  return detail::number<F>((x < y ? next_up(F, x.bits()) : next_down(F, x.bits())).bits);
}
/// x - n * y, where n is the integer part of x / y: exact, with the sign of x.
template <Format F>
HALFSCOPE_HD constexpr Float<F> fmod(Float<F> x, Float<F> y) {
  const Float<F> nearest = remainder(x, y);  // at most half of y, perhaps with the other sign
  if (!nearest || signbit(nearest) == signbit(x)) return nearest;
  return nearest + copysign(y, x);
}

// For half only, on the host: correctly rounded; NaN results are CUDA's (cuda_half.hpp).

inline half exp(half x) { return half::from_bits(cuda_half::hexp(x.bits())); }
inline half exp2(half x) { return half::from_bits(cuda_half::hexp2(x.bits())); }
inline half log(half x) { return half::from_bits(cuda_half::hlog(x.bits())); }
inline half log2(half x) { return half::from_bits(cuda_half::hlog2(x.bits())); }
inline half log10(half x) { return half::from_bits(cuda_half::hlog10(x.bits())); }

}  // namespace halfscope
