// SPDX-License-Identifier: Apache-2.0
// CUDA's half intrinsics (cuda_fp16.h) by name, on encodings of binary16. Each is the correctly
// rounded function, ties to even, NaN 0x7FFF, as that header documents. docs/cuda-half.md lists
// possible differences on GPUs and which of them were measured.
#pragma once

#include <cstdint>

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope::cuda_half {

inline constexpr std::uint16_t kOne = 0x3C00;
inline constexpr std::uint16_t kNan = 0x7FFF;  ///< CUDART_NAN_FP16, "canonical NaN"

namespace detail {

/// Modes without flushing: half instructions keep subnormals, and cuda_fp16.h never uses .ftz.
HALFSCOPE_HD constexpr Modes modes(Rounding rounding = Rounding::ties_to_even) {
  return {.rounding = rounding, .nan = NanPolicy::cuda};
}

HALFSCOPE_HD constexpr std::uint16_t encoding(const Rounded& r) {
  return static_cast<std::uint16_t>(r.bits);
}

/// .sat: clamps to [+0, 1]; NaN becomes +0. A zero of either sign becomes +0, as in the header's
/// host code; its documentation does not specify this.
HALFSCOPE_HD constexpr std::uint16_t saturated(std::uint16_t a) {
  const bool negative = (a & 0x8000) != 0;
  if (negative || is_nan(kBinary16, a)) return 0;
  return a < kOne ? a : kOne;
}

/// .relu: negative numbers become +0; NaN, here always 0x7FFF, is kept. -0 becomes +0, as in the
/// header's fallback for old devices; its documentation does not specify this.
HALFSCOPE_HD constexpr std::uint16_t rectified(std::uint16_t a) {
  return (a & 0x8000) != 0 ? std::uint16_t{0} : a;
}

/// 1 / sqrt(x) rounded once, for x finite and positive. With x = m * 2^e, e even, this is 2^(-e/2)
/// times 2^k / sqrt(m) / 2^k, and floor(2^k / sqrt(m)) is the largest r with r^2 * m <= 2^(2k). For
/// m < 2^12 and k = 31, r has at least 26 bits; a remainder becomes a sticky bit.
HALFSCOPE_HD constexpr std::uint16_t reciprocal_root(const Unpacked& x) {
  constexpr int k = 31;
  constexpr std::uint64_t kLimit = std::uint64_t{1} << (2 * k);
  const bool odd = x.exponent % 2 != 0;
  const std::uint64_t m = odd ? x.significand << 1 : x.significand;
  const int exponent = odd ? x.exponent - 1 : x.exponent;
  std::uint64_t root = 0;
  for (int place = k; place >= 0; --place) {
    const std::uint64_t trial = root | (std::uint64_t{1} << place);
    if (trial * trial <= kLimit / m) root = trial;
  }
  const std::uint64_t sticky = root * root * m == kLimit ? 0 : 1;
  return encoding(
      round_pack(kBinary16, false, (root << 1) | sticky, -exponent / 2 - k - 1, modes()));
}

}  // namespace detail

// Conversions.

/// __float2half_rn and __float2half.
HALFSCOPE_HD constexpr std::uint16_t float2half_rn(float x) {
  return detail::encoding(from_float(kBinary16, x, detail::modes()));
}
HALFSCOPE_HD constexpr std::uint16_t float2half_rz(float x) {
  return detail::encoding(from_float(kBinary16, x, detail::modes(Rounding::toward_zero)));
}
HALFSCOPE_HD constexpr std::uint16_t float2half_ru(float x) {
  return detail::encoding(from_float(kBinary16, x, detail::modes(Rounding::upward)));
}
HALFSCOPE_HD constexpr std::uint16_t float2half_rd(float x) {
  return detail::encoding(from_float(kBinary16, x, detail::modes(Rounding::downward)));
}
/// Rounded once, without an intermediate float.
HALFSCOPE_HD constexpr std::uint16_t double2half(double x) {
  return detail::encoding(from_double(kBinary16, x, detail::modes()));
}
/// Exact; a NaN becomes 0x7FFFFFFF.
HALFSCOPE_HD constexpr float half2float(std::uint16_t a) {
  const Rounded wide = convert(kBinary32, kBinary16, a, detail::modes());
  return halfscope::detail::bit_cast<float>(static_cast<std::uint32_t>(wide.bits));
}

// Arithmetic. An intrinsic and its _rn variant are the same function, except that the compiler may
// contract the one without _rn into an fma, which is hfma here.

HALFSCOPE_HD constexpr std::uint16_t hadd(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(add(kBinary16, a, b, detail::modes()));
}
HALFSCOPE_HD constexpr std::uint16_t hsub(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(subtract(kBinary16, a, b, detail::modes()));
}
HALFSCOPE_HD constexpr std::uint16_t hmul(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(multiply(kBinary16, a, b, detail::modes()));
}
HALFSCOPE_HD constexpr std::uint16_t hdiv(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(divide(kBinary16, a, b, detail::modes()));
}
/// a * b + c rounded once.
HALFSCOPE_HD constexpr std::uint16_t hfma(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  return detail::encoding(fused_multiply_add(kBinary16, a, b, c, detail::modes()));
}

HALFSCOPE_HD constexpr std::uint16_t hadd_sat(std::uint16_t a, std::uint16_t b) {
  return detail::saturated(hadd(a, b));
}
HALFSCOPE_HD constexpr std::uint16_t hsub_sat(std::uint16_t a, std::uint16_t b) {
  return detail::saturated(hsub(a, b));
}
HALFSCOPE_HD constexpr std::uint16_t hmul_sat(std::uint16_t a, std::uint16_t b) {
  return detail::saturated(hmul(a, b));
}
HALFSCOPE_HD constexpr std::uint16_t hfma_sat(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  return detail::saturated(hfma(a, b, c));
}
/// The only intrinsic that CUDA has with _relu.
HALFSCOPE_HD constexpr std::uint16_t hfma_relu(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
  return detail::rectified(hfma(a, b, c));
}

// Comparisons, with -0 < +0. If one operand is NaN, hmax and hmin return the other, hmax_nan and
// hmin_nan return NaN. IEEE 754-2019, 9.6: maximumNumber and maximum, minimumNumber and minimum.

HALFSCOPE_HD constexpr std::uint16_t hmax(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(maximum_number(kBinary16, a, b, detail::modes()));
}
HALFSCOPE_HD constexpr std::uint16_t hmin(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(minimum_number(kBinary16, a, b, detail::modes()));
}
HALFSCOPE_HD constexpr std::uint16_t hmax_nan(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(maximum(kBinary16, a, b, detail::modes()));
}
HALFSCOPE_HD constexpr std::uint16_t hmin_nan(std::uint16_t a, std::uint16_t b) {
  return detail::encoding(minimum(kBinary16, a, b, detail::modes()));
}

// Functions.

/// 1 / a; +-0 returns an infinity of the same sign.
HALFSCOPE_HD constexpr std::uint16_t hrcp(std::uint16_t a) { return hdiv(kOne, a); }

HALFSCOPE_HD constexpr std::uint16_t hsqrt(std::uint16_t a) {
  return detail::encoding(square_root(kBinary16, a, detail::modes()));
}

/// 1 / sqrt(a), rSqrt of IEEE 754-2019, 9.2; +-0 returns an infinity of the same sign.
HALFSCOPE_HD constexpr std::uint16_t hrsqrt(std::uint16_t a) {
  const Unpacked x = unpack(kBinary16, a);
  if (x.kind == Kind::nan) return kNan;
  if (x.kind == Kind::zero) return static_cast<std::uint16_t>(a | 0x7C00);
  if (x.negative) return kNan;
  return x.kind == Kind::infinity ? std::uint16_t{0} : detail::reciprocal_root(x);
}

// Computed through double and the C library, so on the host only. Tests prove correct rounding for
// all 65,536 inputs (tests/number/test_cuda_half.cpp). The only side effect is the inexact flag of
// the floating-point environment; errno is not set.

std::uint16_t hexp(std::uint16_t a);    ///< e^a
std::uint16_t hexp2(std::uint16_t a);   ///< 2^a
std::uint16_t hexp10(std::uint16_t a);  ///< 10^a
std::uint16_t hlog(std::uint16_t a);    ///< ln a: -infinity for +-0, NaN for negative numbers
std::uint16_t hlog2(std::uint16_t a);
std::uint16_t hlog10(std::uint16_t a);

}  // namespace halfscope::cuda_half
