// SPDX-License-Identifier: Apache-2.0
// remainder, IEEE 754-2019, 5.3.1: x - n * y, where n is the integer nearest to x / y, ties to
// even. Always exact, so the rounding direction does not matter.
#pragma once

#include <cstdint>

#include "halfscope/number/arithmetic.hpp"

namespace halfscope {
namespace detail {

/// x - n * y for x and y finite, y nonzero.
HALFSCOPE_HD constexpr Rounded remainder_finite(Format f, Unpacked x, Unpacked y,
                                                const Modes& modes) {
  if (x.significand == 0) return {zero(f, x.negative), {}};
  const Unpacked n = normalised(x, 24);
  const Unpacked d = normalised(y, 24);
  const int steps = n.exponent - d.exponent;
  if (steps < -1)
    return round_pack(f, x.negative, x.significand, x.exponent, modes);  // |x| < |y|/2
  // Long division that keeps the remainder and the quotient's last bit. The unit is half of d's
  // last place, so that steps = -1 needs no extra place.
  std::uint64_t rest = n.significand;
  bool odd = false;
  for (int step = steps; step >= 0; --step) {
    if (step < steps) rest <<= 1;
    odd = rest >= d.significand;
    if (odd) rest -= d.significand;
  }
  if (steps >= 0) rest <<= 1;
  const std::uint64_t divisor = d.significand << 1;
  const bool next = 2 * rest > divisor || (2 * rest == divisor && odd);
  if (next) rest = divisor - rest;
  if (rest == 0) return {zero(f, x.negative), {}};
  return round_pack(f, x.negative != next, rest, d.exponent - 1, modes);
}

}  // namespace detail

/// a - n * b in format f. Invalid if a is infinite or b is zero; a zero result has the sign of a.
HALFSCOPE_HD constexpr Rounded remainder(Format f, std::uint64_t a, std::uint64_t b,
                                         const Modes& modes = {}) {
  detail::require_arithmetic(f);
  if (is_nan(f, a) || is_nan(f, b)) return detail::propagate_nan(f, modes, a, b);
  const Unpacked x = unpack(f, detail::operand(f, a, modes));
  const Unpacked y = unpack(f, detail::operand(f, b, modes));
  if (x.kind == Kind::infinity || y.kind == Kind::zero) return detail::invalid_operation(f, modes);
  if (y.kind == Kind::infinity) {
    return round_pack(f, x.negative, x.significand, x.exponent, modes);
  }
  return detail::remainder_finite(f, x, y, modes);
}

}  // namespace halfscope
