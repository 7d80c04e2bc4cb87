// SPDX-License-Identifier: Apache-2.0
// E8M0, the block scale of the OCP Microscaling Formats (MX) 1.0, 5.4.1: a power of two in 8 bits.
// It has no sign, zero or infinity, so it is not in the table of format.hpp.
#pragma once

#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/format.hpp"

namespace halfscope {

inline constexpr int kE8M0Bias = 127;
inline constexpr int kE8M0MinExponent = -127;
inline constexpr int kE8M0MaxExponent = 127;
inline constexpr std::uint8_t kE8M0Nan = 0xFF;

/// Returns k of the scale 2^k. `scale` must not be kE8M0Nan.
HALFSCOPE_HD constexpr int e8m0_exponent(std::uint8_t scale) {
  return static_cast<int>(scale) - kE8M0Bias;
}

/// Returns the scale 2^k, with k clamped to [-127, 127].
HALFSCOPE_HD constexpr std::uint8_t e8m0_from_exponent(int k) {
  const int clamped = k < kE8M0MinExponent   ? kE8M0MinExponent
                      : k > kE8M0MaxExponent ? kE8M0MaxExponent
                                             : k;
  return static_cast<std::uint8_t>(clamped + kE8M0Bias);
}

/// Returns the scale as binary32, exactly; 2^-127 is subnormal, kE8M0Nan becomes NaN.
HALFSCOPE_HD constexpr float e8m0_to_float(std::uint8_t scale) {
  const std::uint64_t bits = scale == kE8M0Nan ? kBinary32.quiet_nan()
                             : scale == 0      ? std::uint64_t{1} << (kBinary32.fraction_bits() - 1)
                                               : std::uint64_t{scale} << kBinary32.fraction_bits();
  return detail::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

}  // namespace halfscope
