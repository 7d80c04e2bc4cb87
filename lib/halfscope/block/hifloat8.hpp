// SPDX-License-Identifier: Apache-2.0
// HiFloat8: Y. Luo et al., Ascend HiFloat8 format for deep learning, arXiv 2409.16626. A code has 8
// bits. A prefix gives the number of bits of its exponent and fraction.
//
//   prefix  |exponent E|  bits of E (sign, then the rest below its leading one)  bits of fraction
//   11      8 to 15       4                                                      1
//   10      4 to 7        3                                                      2
//   01      2, 3          2                                                      3
//   001     1             1                                                      3
//   0001    0             0                                                      3
//   0000    the value 2^(M - 23) for the last three bits M = 1 to 7, zero for 0
#pragma once

#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/round.hpp"

namespace halfscope {
namespace block {

inline constexpr std::uint8_t kHifloat8Nan = 0x80, kHifloat8Infinity = 0x6F;
inline constexpr std::uint8_t kHifloat8Largest = 0x6E;  ///< 32768

}  // namespace block
namespace detail {

/// Bits of the fraction in the binade of 2^exponent, for exponents from -22 to 15.
HALFSCOPE_HD constexpr int hifloat8_fraction_bits(int exponent) {
  const int size = exponent < 0 ? -exponent : exponent;
  return size < 4 ? 3 : size < 8 ? 2 : size < 16 ? 1 : 0;
}

/// Returns the bits of prefix and exponent, shifted to their place in a code.
HALFSCOPE_HD constexpr unsigned hifloat8_exponent_code(int exponent) {
  const unsigned size = static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
  const unsigned minus = exponent < 0 ? 1 : 0;
  if (size == 0) return 0x08;
  if (size == 1) return 0x10 | minus << 3;
  if (size < 4) return 0x20 | minus << 4 | (size - 2) << 3;
  if (size < 8) return 0x40 | minus << 4 | (size - 4) << 2;
  return 0x60 | minus << 4 | (size - 8) << 1;
}

}  // namespace detail
namespace block {

/// Rounds a binary32 encoding to HiFloat8: to nearest, ties away from zero, at the fraction bits of
/// the binade of the value before rounding. From 40960 on the result is an infinity, or the largest
/// number if `saturate` is set; from 2^-23 to 2^-22 it is 2^-22. There is one zero and one NaN.
HALFSCOPE_HD constexpr std::uint8_t hifloat8_from_bits(std::uint32_t bits, bool saturate = true) {
  const Unpacked x = unpack(kBinary32, bits);
  const unsigned sign = x.negative ? 0x80 : 0;
  const unsigned beyond = sign | (saturate ? kHifloat8Largest : kHifloat8Infinity);
  if (x.kind == Kind::nan) return kHifloat8Nan;
  if (x.kind == Kind::infinity) return static_cast<std::uint8_t>(beyond);
  const int leading = x.exponent + detail::bit_width(x.significand) - 1;
  if (x.kind == Kind::zero || leading < -23) return 0;
  if (leading == -23) return static_cast<std::uint8_t>(sign | 1);
  if (leading > 15) return static_cast<std::uint8_t>(beyond);
  const int fraction_bits = detail::hifloat8_fraction_bits(leading);
  constexpr int kBias = 31;  // its exponents are wider than HiFloat8's
  const Format cut = {fraction_bits + 1, kBias, fraction_bits + 7};
  const auto rounded = static_cast<unsigned>(
      round_pack(cut, false, x.significand, x.exponent, {.rounding = Rounding::ties_to_away}).bits);
  const int exponent = static_cast<int>(rounded >> fraction_bits) - kBias;
  const unsigned fraction = rounded & ((1U << fraction_bits) - 1);
  if (exponent > 15 || (exponent == 15 && fraction != 0)) return static_cast<std::uint8_t>(beyond);
  if (exponent < -15) return static_cast<std::uint8_t>(sign | static_cast<unsigned>(exponent + 23));
  return static_cast<std::uint8_t>(sign | detail::hifloat8_exponent_code(exponent) | fraction);
}

/// Returns the value of a code, exactly.
HALFSCOPE_HD constexpr float hifloat8_to_float(std::uint8_t code) {
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  const unsigned low = code & 0x7FU;
  const auto value = [&](std::uint32_t magnitude) {
    return detail::bit_cast<float>(sign | magnitude);
  };
  if (code == kHifloat8Nan) return value(0x7FC00000U ^ sign);
  if (low == kHifloat8Infinity) return value(0x7F800000U);
  if (low == 0) return 0;
  if (low < 8) return value((low + 127U - 23U) << 23);
  int exponent = -15;
  while (detail::hifloat8_exponent_code(exponent) !=
         (low & ~((1U << detail::hifloat8_fraction_bits(exponent)) - 1))) {
    ++exponent;
  }
  const int fraction_bits = detail::hifloat8_fraction_bits(exponent);
  const std::uint32_t fraction = low & ((1U << fraction_bits) - 1);
  return value(static_cast<std::uint32_t>(exponent + 127) << 23 | fraction << (23 - fraction_bits));
}

}  // namespace block
}  // namespace halfscope
