// SPDX-License-Identifier: Apache-2.0
// binary16 with the GPU's conversion instructions, with the results and flags of the scalar
// emulator, for the modes of can_use_instructions(). Also compiled for the host (cuda_fp16.h has
// host code for the same conversions), where tests/cuda/test_half_instructions.cpp compares it with
// the scalar code, the conversion over all 2^32 inputs.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::cuda::instructions {

inline bool can_use_instructions(Format f, const Modes& modes) {
  const bool has_direction =
      modes.rounding == Rounding::ties_to_even || modes.rounding == Rounding::toward_zero ||
      modes.rounding == Rounding::upward || modes.rounding == Rounding::downward;
  return f == kBinary16 && has_direction && modes.tininess == Tininess::after_rounding &&
         !modes.denormals_are_zero && !modes.flush_to_zero && !modes.saturate;
}

HALFSCOPE_HD inline std::uint16_t rounded(float x, Rounding rounding) {
  switch (rounding) {
    case Rounding::toward_zero: return static_cast<__half_raw>(__float2half_rz(x)).x;
    case Rounding::upward: return static_cast<__half_raw>(__float2half_ru(x)).x;
    case Rounding::downward: return static_cast<__half_raw>(__float2half_rd(x)).x;
    default: return static_cast<__half_raw>(__float2half_rn(x)).x;
  }
}

/// Converts exactly; `half` must not be NaN.
HALFSCOPE_HD inline float widened(std::uint16_t half) {
  __half_raw raw;
  raw.x = half;
  return __half2float(__half(raw));
}

/// Returns a binary32 encoding. Magnitudes below it stay below 2^-14 when rounded to 11 bits with
/// unbounded exponent, so they are tiny after rounding. To nearest, 2^-14 - 2^-26 is a tie that
/// rounds up; away from zero, everything above 2^-14 - 2^-25 rounds up.
HALFSCOPE_HD inline std::uint32_t tiny_below(Rounding rounding, bool negative) {
  constexpr std::uint32_t kSmallestNormal = 0x38800000;  // 2^-14; an ulp below it is 2^-38
  if (rounding == Rounding::ties_to_even) return kSmallestNormal - (1U << 12);
  const bool away = rounding == (negative ? Rounding::downward : Rounding::upward);
  return away ? kSmallestNormal - (1U << 13) + 1 : kSmallestNormal;
}

/// convert(kBinary16, kBinary32, x) by one instruction; the flags are computed from its result.
HALFSCOPE_HD inline Rounded narrow(float x, const Modes& modes) {
  constexpr std::uint32_t kInfinity = 0x7F800000;
  const auto bits = halfscope::detail::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > kInfinity) return convert(kBinary16, kBinary32, bits, modes);
  const std::uint16_t half = rounded(x, modes.rounding);
  Flags flags;
  flags.inexact = widened(half) != x;
  if (flags.inexact) {  // so x is finite
    constexpr std::uint32_t kTwoTo16 = 0x47800000;
    flags.overflow = (half & 0x7FFF) == 0x7C00 || magnitude >= kTwoTo16;
    flags.underflow = magnitude < tiny_below(modes.rounding, bits != magnitude);
  }
  return {half, flags};
}

/// convert(kBinary32, kBinary16, half).
HALFSCOPE_HD inline Rounded widen(std::uint16_t half, const Modes& modes) {
  if ((half & 0x7FFF) > 0x7C00) return convert(kBinary32, kBinary16, half, modes);
  return {halfscope::detail::bit_cast<std::uint32_t>(widened(half)), {}};
}

/// x + y rounded to odd: if binary32 cannot represent the sum, the neighbour with an odd last
/// place. Rounding this to 11 bits equals rounding once (Boldo and Melquiond, IEEE TC 57(4), 2008),
/// and no threshold for flags lies between it and the exact sum. TwoSum (Knuth; Moller 1965)
/// computes the error. No over- or underflow: x and y are sums and products of binary16 numbers.
HALFSCOPE_HD inline float odd_sum(float x, float y) {
  const float sum = x + y;
  const float y_part = sum - x;
  const float error = (x - (sum - y_part)) + (y - y_part);
  const auto bits = halfscope::detail::bit_cast<std::uint32_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  return halfscope::detail::bit_cast<float>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

HALFSCOPE_HD inline bool is_finite(std::uint16_t half) { return (half & 0x7C00) != 0x7C00; }

/// Returns true if the sum has the right sign: binary32 adds to nearest, so a zero sum may have the
/// wrong sign only for rounding downward.
HALFSCOPE_HD inline bool has_sign(float sum, const Modes& modes) {
  return sum != 0 || modes.rounding != Rounding::downward;
}

HALFSCOPE_HD inline Rounded add(std::uint16_t a, std::uint16_t b, const Modes& modes) {
  if (is_finite(a) && is_finite(b)) {
    const float sum = odd_sum(widened(a), widened(b));
    if (has_sign(sum, modes)) return narrow(sum, modes);
  }
  return halfscope::add(kBinary16, a, b, modes);
}

/// Products of two 11-bit numbers are exact in binary32.
HALFSCOPE_HD inline Rounded multiply(std::uint16_t a, std::uint16_t b, const Modes& modes) {
  if (is_finite(a) && is_finite(b)) return narrow(widened(a) * widened(b), modes);
  return halfscope::multiply(kBinary16, a, b, modes);
}

HALFSCOPE_HD inline Rounded fused_multiply_add(std::uint16_t a, std::uint16_t b, std::uint16_t c,
                                               const Modes& modes) {
  if (is_finite(a) && is_finite(b) && is_finite(c)) {
    const float product = widened(a) * widened(b);
    const float sum = odd_sum(product, widened(c));
    if (has_sign(sum, modes)) return narrow(sum, modes);
  }
  return halfscope::fused_multiply_add(kBinary16, a, b, c, modes);
}

}  // namespace halfscope::cuda::instructions
