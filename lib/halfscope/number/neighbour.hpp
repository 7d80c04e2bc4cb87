// SPDX-License-Identifier: Apache-2.0
// Neighbours, exponents, signs and classes: IEEE 754-2019, 5.3.1, 5.3.3, 5.5.1, 5.7.2.
#pragma once

#include <cstdint>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/nan.hpp"
#include "halfscope/number/round.hpp"

namespace halfscope {

/// -a, |a|, and a with the sign of b, for any encoding including NaNs; no flags (5.5.1).
HALFSCOPE_HD constexpr std::uint64_t negate(Format f, std::uint64_t a) { return a ^ f.sign_mask(); }
HALFSCOPE_HD constexpr std::uint64_t absolute(Format f, std::uint64_t a) {
  return a & f.magnitude_mask();
}
HALFSCOPE_HD constexpr std::uint64_t copy_sign(Format f, std::uint64_t a, std::uint64_t b) {
  return (a & f.magnitude_mask()) | (b & f.sign_mask());
}

namespace detail {

/// Returns the next encoding up or down; after the largest finite number comes infinity.
HALFSCOPE_HD constexpr Rounded neighbour(Format f, std::uint64_t a, bool up, const Modes& modes) {
  if (is_nan(f, a)) return propagate_nan(f, modes, a);
  const std::uint64_t x = operand(f, a, modes);
  const std::uint64_t magnitude = x & f.magnitude_mask();
  if (magnitude == 0) return {zero(f, !up) | 1, {}};
  const bool negative = (x & f.sign_mask()) != 0;
  const bool away = negative != up;
  if (!away) return {x - 1, {}};
  return {magnitude < f.largest_finite() ? x + 1 : infinite(f, negative, modes), {}};
}

}  // namespace detail

/// nextUp, nextDown (5.3.1): the least number above a, the greatest below. Only a signaling NaN
/// raises a flag. The largest finite number is followed by Format::infinity().
HALFSCOPE_HD constexpr Rounded next_up(Format f, std::uint64_t a, const Modes& modes = {}) {
  return detail::neighbour(f, a, true, modes);
}
HALFSCOPE_HD constexpr Rounded next_down(Format f, std::uint64_t a, const Modes& modes = {}) {
  return detail::neighbour(f, a, false, modes);
}

/// scaleB (5.3.3): a * 2^n, rounded once.
HALFSCOPE_HD constexpr Rounded scale_b(Format f, std::uint64_t a, std::int64_t n,
                                       const Modes& modes = {}) {
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  if (x.kind == Kind::nan) return detail::propagate_nan(f, modes, a);
  if (x.kind == Kind::infinity) return {detail::infinite(f, x.negative, modes), {}};
  constexpr std::int64_t kFar = 100000;  // beyond the range of every format
  const auto shift = static_cast<int>(n > kFar ? kFar : n < -kFar ? -kFar : n);
  return round_pack(f, x.negative, x.significand, x.exponent + shift, modes);
}

/// logB (5.3.3): the exponent of a as a number of format f, with subnormals normalised. Rounded
/// once if f has too few digits for it (E5M2's -13). logB(0) is -infinity with divide_by_zero.
HALFSCOPE_HD constexpr Rounded log_b(Format f, std::uint64_t a, const Modes& modes = {}) {
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  switch (x.kind) {
    case Kind::nan: return detail::propagate_nan(f, modes, a);
    case Kind::infinity: return {detail::infinite(f, false, modes), {}};
    case Kind::zero: return {detail::infinite(f, true, modes), {.divide_by_zero = true}};
    case Kind::finite: break;
  }
  const int e = x.exponent + detail::bit_width(x.significand) - 1;
  return round_pack(f, e < 0, static_cast<std::uint64_t>(e < 0 ? -e : e), 0, modes);
}

/// The ten classes of 5.7.2.
enum class Class : std::uint8_t {
  signaling_nan,
  quiet_nan,
  negative_infinity,
  negative_normal,
  negative_subnormal,
  negative_zero,
  positive_zero,
  positive_subnormal,
  positive_normal,
  positive_infinity
};

HALFSCOPE_HD constexpr Class classify(Format f, std::uint64_t a) {
  if (is_nan(f, a)) return is_signaling(f, a) ? Class::signaling_nan : Class::quiet_nan;
  const bool negative = (a & f.sign_mask()) != 0;
  const std::uint64_t magnitude = a & f.magnitude_mask();
  if (magnitude > f.largest_finite()) {
    return negative ? Class::negative_infinity : Class::positive_infinity;
  }
  if (magnitude > f.fraction_mask())
    return negative ? Class::negative_normal : Class::positive_normal;
  if (magnitude != 0) return negative ? Class::negative_subnormal : Class::positive_subnormal;
  return negative ? Class::negative_zero : Class::positive_zero;
}

}  // namespace halfscope
