// SPDX-License-Identifier: Apache-2.0
// The arithmetic of IEEE 754-2019, 5.4.1, for formats of at most 24 bits of precision. Each result
// is computed exactly, or with all bits after the first 57 folded into the last of them, and
// rounded once by round_pack. Special operands follow clauses 6 and 7.
//
// f: the format of operands and result. a, b, c: encodings in the low f.width bits, 0 above them.
// All functions throw std::invalid_argument for binary64.
#pragma once

#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/nan.hpp"
#include "halfscope/number/round.hpp"

namespace halfscope {
namespace detail {

/// Returns the same value with the leading bit of its significand at bit `leading`.
HALFSCOPE_HD constexpr Unpacked normalised(Unpacked x, int leading) {
  const int shift = leading - (bit_width(x.significand) - 1);
  x.significand <<= shift;
  x.exponent -= shift;
  return x;
}

HALFSCOPE_HD constexpr std::uint64_t shift_right_sticky(std::uint64_t x, int shift) {
  if (shift == 0) return x;
  if (shift > 63) return x != 0 ? 1 : 0;
  return (x >> shift) | ((x << (64 - shift)) != 0 ? 1 : 0);
}

/// Returns true if an exactly zero sum is -0 (IEEE 754-2019, 6.3); x, y: the operands' signs.
HALFSCOPE_HD constexpr bool zero_sum_is_negative(bool x, bool y, const Modes& modes) {
  return x == y ? x : modes.rounding == Rounding::downward;
}

/// x + y rounded once; x and y finite with significands of at most 48 bits. With leading bits at 62
/// the larger operand ends in zeros, so a sticky bit survives the subtraction. Operands far enough
/// apart to need a sticky bit cancel at most one bit.
HALFSCOPE_HD constexpr Rounded add_finite(Format f, Unpacked x, Unpacked y, const Modes& modes) {
  if (x.significand == 0 && y.significand == 0) {
    return {zero(f, zero_sum_is_negative(x.negative, y.negative, modes)), {}};
  }
  if (x.significand == 0) return round_pack(f, y.negative, y.significand, y.exponent, modes);
  if (y.significand == 0) return round_pack(f, x.negative, x.significand, x.exponent, modes);
  x = normalised(x, 62);
  y = normalised(y, 62);
  const bool x_is_larger =
      x.exponent != y.exponent ? x.exponent > y.exponent : x.significand >= y.significand;
  const Unpacked& large = x_is_larger ? x : y;
  const Unpacked& small = x_is_larger ? y : x;
  const std::uint64_t aligned =
      shift_right_sticky(small.significand, large.exponent - small.exponent);
  if (x.negative == y.negative) {
    return round_pack(f, x.negative, large.significand + aligned, large.exponent, modes);
  }
  if (large.significand == aligned) {
    return {zero(f, zero_sum_is_negative(x.negative, y.negative, modes)), {}};
  }
  return round_pack(f, large.negative, large.significand - aligned, large.exponent, modes);
}

/// Square root of radicand * 2^(2 * digits), bit by bit: rounded down, with the lowest bit set if
/// the root is inexact. radicand < 2^26. `digits`: binary places after the point.
HALFSCOPE_HD constexpr std::uint64_t root_sticky(std::uint64_t radicand, int digits) {
  std::uint64_t root = 0, rest = 0;
  for (int place = 12; place >= -digits;
       --place) {  // two bits of the radicand produce one bit of the root
    const std::uint64_t two = place >= 0 ? (radicand >> (2 * place)) & 3 : 0;
    rest = (rest << 2) | two;
    const std::uint64_t trial = (root << 2) | 1;
    root <<= 1;
    if (rest >= trial) {
      rest -= trial;
      root |= 1;
    }
  }
  return root | (rest != 0 ? 1 : 0);
}

}  // namespace detail

HALFSCOPE_HD constexpr Rounded add(Format f, std::uint64_t a, std::uint64_t b,
                                   const Modes& modes = {}) {
  detail::require_arithmetic(f);
  if (is_nan(f, a) || is_nan(f, b)) return detail::propagate_nan(f, modes, a, b);
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  const Unpacked y = unpack(f, detail::operand(f, b, modes));
  if (x.kind == Kind::infinity && y.kind == Kind::infinity && x.negative != y.negative) {
    return detail::invalid_operation(f, modes);
  }
  if (x.kind == Kind::infinity) return {detail::infinite(f, x.negative, modes), {}};
  if (y.kind == Kind::infinity) return {detail::infinite(f, y.negative, modes), {}};
  return detail::add_finite(f, x, y, modes);
}

/// a - b, computed as a + (-b); a NaN operand keeps its sign.
HALFSCOPE_HD constexpr Rounded subtract(Format f, std::uint64_t a, std::uint64_t b,
                                        const Modes& modes = {}) {
  detail::require_arithmetic(f);
  if (is_nan(f, a) || is_nan(f, b)) return detail::propagate_nan(f, modes, a, b);
  return add(f, a, b ^ f.sign_mask(), modes);
}

HALFSCOPE_HD constexpr Rounded multiply(Format f, std::uint64_t a, std::uint64_t b,
                                        const Modes& modes = {}) {
  detail::require_arithmetic(f);
  if (is_nan(f, a) || is_nan(f, b)) return detail::propagate_nan(f, modes, a, b);
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  const Unpacked y = unpack(f, detail::operand(f, b, modes));
  const bool negative = x.negative != y.negative;
  const bool infinite = x.kind == Kind::infinity || y.kind == Kind::infinity;
  const bool zero = x.kind == Kind::zero || y.kind == Kind::zero;
  if (infinite && zero) return detail::invalid_operation(f, modes);
  if (infinite) return {detail::infinite(f, negative, modes), {}};
  return round_pack(f, negative, x.significand * y.significand, x.exponent + y.exponent, modes);
}

HALFSCOPE_HD constexpr Rounded divide(Format f, std::uint64_t a, std::uint64_t b,
                                      const Modes& modes = {}) {
  detail::require_arithmetic(f);
  if (is_nan(f, a) || is_nan(f, b)) return detail::propagate_nan(f, modes, a, b);
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  const Unpacked y = unpack(f, detail::operand(f, b, modes));
  const bool negative = x.negative != y.negative;
  if (x.kind == y.kind && x.kind != Kind::finite) return detail::invalid_operation(f, modes);
  if (x.kind == Kind::infinity) return {detail::infinite(f, negative, modes), {}};
  if (y.kind == Kind::infinity || x.kind == Kind::zero) return {detail::zero(f, negative), {}};
  if (y.kind == Kind::zero) {
    return {detail::infinite(f, negative, modes), {.divide_by_zero = true}};
  }
  // Long division in two steps, for at least 58 bits and a sticky bit: 2^55 / 2^24, 2^52 / 2^24.
  const Unpacked n = detail::normalised(x, 55);
  const Unpacked d = detail::normalised(y, 23);
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): normalised, so its bit 23 is set
  const std::uint64_t high = n.significand / d.significand;
  const std::uint64_t rest = (n.significand % d.significand) << 28;
  const std::uint64_t quotient = (high << 28) + rest / d.significand;
  const std::uint64_t sticky = rest % d.significand != 0 ? 1 : 0;
  return round_pack(f, negative, quotient | sticky, n.exponent - d.exponent - 28, modes);
}

/// a * b + c rounded once: fusedMultiplyAdd. For infinity * zero + NaN, which 7.2 c does not fix:
/// invalid, and the default NaN counts as the first operand.
HALFSCOPE_HD constexpr Rounded fused_multiply_add(Format f, std::uint64_t a, std::uint64_t b,
                                                  std::uint64_t c, const Modes& modes = {}) {
  detail::require_arithmetic(f);
  if (is_nan(f, a) || is_nan(f, b)) return detail::propagate_nan(f, modes, a, b, c);
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  const Unpacked y = unpack(f, detail::operand(f, b, modes));
  const Unpacked z = unpack(f, detail::operand(f, c, modes));
  const bool negative = x.negative != y.negative;
  const bool infinite = x.kind == Kind::infinity || y.kind == Kind::infinity;
  if (infinite && (x.kind == Kind::zero || y.kind == Kind::zero)) {
    return detail::invalid_operation(f, modes);
  }
  if (z.kind == Kind::nan) return detail::propagate_nan(f, modes, c);
  if (infinite && z.kind == Kind::infinity && negative != z.negative) {
    return detail::invalid_operation(f, modes);
  }
  if (infinite) return {detail::infinite(f, negative, modes), {}};
  if (z.kind == Kind::infinity) return {detail::infinite(f, z.negative, modes), {}};
  const Unpacked product = {Kind::finite, negative, x.significand * y.significand,
                            x.exponent + y.exponent};
  return detail::add_finite(f, product, z, modes);
}

HALFSCOPE_HD constexpr Rounded square_root(Format f, std::uint64_t a, const Modes& modes = {}) {
  detail::require_arithmetic(f);
  if (is_nan(f, a)) return detail::propagate_nan(f, modes, a);
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  if (x.kind == Kind::zero) return {detail::zero(f, x.negative), {}};
  if (x.negative) return detail::invalid_operation(f, modes);
  if (x.kind == Kind::infinity) return {detail::infinite(f, false, modes), {}};
  const Unpacked n = detail::normalised(x, 24);  // 2^24 or 2^25, so that the exponent is even
  const bool odd = n.exponent % 2 != 0;
  const std::uint64_t radicand = odd ? n.significand << 1 : n.significand;
  const int exponent = odd ? n.exponent - 1 : n.exponent;
  constexpr int kPlaces = 46;  // binary places below the 12 or 13 bits before the point
  return round_pack(f, false, detail::root_sticky(radicand, kPlaces), exponent / 2 - kPlaces,
                    modes);
}

}  // namespace halfscope
