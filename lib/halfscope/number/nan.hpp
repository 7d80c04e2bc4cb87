// SPDX-License-Identifier: Apache-2.0
// NaNs, infinities, and the treatment of special operands before an operation computes.
#pragma once

#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

HALFSCOPE_HD constexpr bool is_nan(Format f, std::uint64_t bits) {
  return f.has_nan() &&
         (bits & f.magnitude_mask()) > f.largest_finite() + (f.has_infinity() ? 1 : 0);
}

/// Returns true for a NaN whose first fraction bit is 0, IEEE 754-2019, 6.2.1. E4M3's NaN is quiet.
HALFSCOPE_HD constexpr bool is_signaling(Format f, std::uint64_t bits) {
  const std::uint64_t quiet_bit = f.has_infinity() ? f.quiet_nan() ^ f.infinity() : 0;
  return quiet_bit != 0 && is_nan(f, bits) && (bits & quiet_bit) == 0;
}

HALFSCOPE_HD constexpr bool is_infinity(Format f, std::uint64_t bits) {
  return f.has_infinity() && (bits & f.magnitude_mask()) == f.infinity();
}

/// The NaN that an invalid operation returns. In a format without NaN: its largest finite number.
HALFSCOPE_HD constexpr std::uint64_t default_nan(Format f, const Modes& modes) {
  if (!f.has_nan()) return f.quiet_nan();
  switch (modes.nan) {
    case NanPolicy::x86: return f.sign_mask() | f.quiet_nan();
    case NanPolicy::canonical: return f.quiet_nan();
    case NanPolicy::cuda: break;
  }
  return f.magnitude_mask();
}

namespace detail {

/// Result of an operation without a useful result, IEEE 754-2019, 7.2.
HALFSCOPE_HD constexpr Rounded invalid_operation(Format f, const Modes& modes) {
  return {default_nan(f, modes), {.invalid = true}};
}

/// Result of an operation with a NaN among its operands, IEEE 754-2019, 6.2.3. Operations with
/// fewer than three operands pass 0 for the others.
HALFSCOPE_HD constexpr Rounded propagate_nan(Format f, const Modes& modes, std::uint64_t a,
                                             std::uint64_t b = 0, std::uint64_t c = 0) {
  const bool invalid = is_signaling(f, a) || is_signaling(f, b) || is_signaling(f, c);
  if (modes.nan != NanPolicy::x86) return {default_nan(f, modes), {.invalid = invalid}};
  const std::uint64_t first = is_nan(f, a) ? a : is_nan(f, b) ? b : c;
  return {first | f.quiet_nan(), {.invalid = invalid}};
}

HALFSCOPE_HD constexpr std::uint64_t infinite(Format f, bool negative, const Modes& modes) {
  return (negative ? f.sign_mask() : 0) | (modes.saturate ? f.largest_finite() : f.infinity());
}

HALFSCOPE_HD constexpr std::uint64_t zero(Format f, bool negative) {
  return negative ? f.sign_mask() : 0;
}

/// Returns the operand that the operation uses: with denormals_are_zero, a subnormal becomes zero.
HALFSCOPE_HD constexpr std::uint64_t operand(Format f, std::uint64_t bits, const Modes& modes) {
  const bool subnormal = (bits & f.magnitude_mask()) <= f.fraction_mask();
  return modes.denormals_are_zero && subnormal ? bits & f.sign_mask() : bits;
}

}  // namespace detail
}  // namespace halfscope
