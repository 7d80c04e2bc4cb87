// SPDX-License-Identifier: Apache-2.0
// Rounding to integral values, and conversions to and from integers of 32 and 64 bits.
#pragma once

#include <cstdint>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/nan.hpp"
#include "halfscope/number/round.hpp"

namespace halfscope {

enum class IntegerType : std::uint8_t { i32, u32, i64, u64 };

/// Number of bits of the type.
HALFSCOPE_HD constexpr int width_of(IntegerType type) {
  return type == IntegerType::i32 || type == IntegerType::u32 ? 32 : 64;
}
HALFSCOPE_HD constexpr bool is_signed(IntegerType type) {
  return type == IntegerType::i32 || type == IntegerType::i64;
}

namespace detail {

/// The magnitude of x rounded to an integer in modes.rounding; the integer has at most 64 bits.
struct Integral {
  std::uint64_t magnitude;
  bool inexact;
};
HALFSCOPE_HD constexpr Integral nearest_integral(const Unpacked& x, const Modes& modes) {
  const Cut c = cut_at(x.significand, -x.exponent);
  return {c.kept + (rounds_up(c, x.negative, modes) ? 1 : 0), c.inexact()};
}

HALFSCOPE_HD constexpr std::uint64_t low_bits(int width) {
  return width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

/// Returns the largest magnitude of the type's numbers with that sign.
HALFSCOPE_HD constexpr std::uint64_t limit(IntegerType type, bool negative) {
  const std::uint64_t top = std::uint64_t{1} << (width_of(type) - 1);
  if (is_signed(type)) return negative ? top : top - 1;
  return negative ? 0 : low_bits(width_of(type));
}

/// Result for a value that the type cannot represent, which IEEE 754-2019, 5.8 does not fix.
HALFSCOPE_HD constexpr Rounded no_integer(IntegerType type, bool nan, bool negative,
                                          const Modes& modes) {
  const int width = width_of(type);
  const std::uint64_t top = std::uint64_t{1} << (width - 1);
  const std::uint64_t nearest =  // in two's complement: -top is top
      limit(type, negative && !nan);
  switch (modes.nan) {
    case NanPolicy::x86: return {is_signed(type) ? top : low_bits(width), {.invalid = true}};
    case NanPolicy::canonical: return {nearest, {.invalid = true}};
    case NanPolicy::cuda: break;
  }
  return {nan ? (width == 64 ? top : 0) : nearest, {.invalid = true}};
}

}  // namespace detail

/// roundToIntegral, IEEE 754-2019, 5.9, in modes.rounding. `exact`: raise inexact if the value
/// changes (roundToIntegralExact). Keeps the sign of zero.
HALFSCOPE_HD constexpr Rounded round_to_integral(Format f, std::uint64_t a, const Modes& modes = {},
                                                 bool exact = false) {
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  if (x.kind == Kind::nan) return detail::propagate_nan(f, modes, a);
  if (x.kind == Kind::infinity) return {detail::infinite(f, x.negative, modes), {}};
  if (x.kind == Kind::zero) return {detail::zero(f, x.negative), {}};
  if (x.exponent >= 0) return {a, {}};
  const detail::Integral n = detail::nearest_integral(x, modes);
  Rounded result = round_pack(f, x.negative, n.magnitude, 0, modes);  // E2M3's 7.5 may overflow
  result.flags.inexact = result.flags.overflow || (exact && n.inexact);
  return result;
}

/// convertToInteger, IEEE 754-2019, 5.8, in modes.rounding. `exact`: raise inexact if the value
/// changes. Result: two's complement in the low bits. A value out of range raises only invalid.
HALFSCOPE_HD constexpr Rounded to_integer(IntegerType type, Format f, std::uint64_t a,
                                          const Modes& modes = {}, bool exact = false) {
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  if (x.kind == Kind::zero) return {0, {}};
  if (x.kind != Kind::finite) {
    return detail::no_integer(type, x.kind == Kind::nan, x.negative, modes);
  }
  if (x.exponent + detail::bit_width(x.significand) > 64) {
    return detail::no_integer(type, false, x.negative, modes);
  }
  const detail::Integral n = detail::nearest_integral(x, modes);
  if (n.magnitude > detail::limit(type, x.negative)) {
    return detail::no_integer(type, false, x.negative, modes);
  }
  const std::uint64_t bits = x.negative ? ~n.magnitude + 1 : n.magnitude;
  return {bits & detail::low_bits(width_of(type)), {.inexact = exact && n.inexact}};
}

/// convertFromInt, IEEE 754-2019, 5.4.1. `bits`: two's complement in the low 32 or 64 bits.
HALFSCOPE_HD constexpr Rounded from_integer(Format f, IntegerType type, std::uint64_t bits,
                                            const Modes& modes = {}) {
  const std::uint64_t low = bits & detail::low_bits(width_of(type));
  const bool negative = is_signed(type) && (low >> (width_of(type) - 1)) != 0;
  const std::uint64_t magnitude = negative ? (~low + 1) & detail::low_bits(width_of(type)) : low;
  return round_pack(f, negative, magnitude, 0, modes);
}

}  // namespace halfscope
