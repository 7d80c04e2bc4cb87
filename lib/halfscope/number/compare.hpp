// SPDX-License-Identifier: Apache-2.0
// Comparisons (IEEE 754-2019, 5.11), the total order (5.10), minimum and maximum (9.6, and the 2008
// standard's 5.3.1). All use encodings, which for one sign are ordered like their values.
#pragma once

#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/number/nan.hpp"

namespace halfscope {

struct Compared {
  bool result;
  Flags flags;
};

/// NaN operands that raise `invalid`: only signaling NaNs, or all (5.11, tables 5.1 and 5.3).
enum class OnNan : std::uint8_t { quiet, signaling };

namespace detail {

/// Returns an integer ordered like the encodings; -0 is just below +0.
HALFSCOPE_HD constexpr std::int64_t order(Format f, std::uint64_t bits) {
  const auto magnitude = static_cast<std::int64_t>(bits & f.magnitude_mask());
  return (bits & f.sign_mask()) != 0 ? -magnitude - 1 : magnitude;
}

HALFSCOPE_HD constexpr bool is_zero(Format f, std::uint64_t bits) {
  return (bits & f.magnitude_mask()) == 0;
}

HALFSCOPE_HD constexpr bool values_equal(Format f, std::uint64_t a, std::uint64_t b) {
  return order(f, a) == order(f, b) || (is_zero(f, a) && is_zero(f, b));
}

HALFSCOPE_HD constexpr Flags comparison_flags(Format f, std::uint64_t a, std::uint64_t b,
                                              OnNan on_nan) {
  const bool nan = is_nan(f, a) || is_nan(f, b);
  return {.invalid =
              is_signaling(f, a) || is_signaling(f, b) || (nan && on_nan == OnNan::signaling)};
}

}  // namespace detail

HALFSCOPE_HD constexpr Compared unordered(Format f, std::uint64_t a, std::uint64_t b) {
  return {is_nan(f, a) || is_nan(f, b), detail::comparison_flags(f, a, b, OnNan::quiet)};
}

HALFSCOPE_HD constexpr Compared equal(Format f, std::uint64_t a, std::uint64_t b,
                                      OnNan on_nan = OnNan::quiet, const Modes& modes = {}) {
  const std::uint64_t x = detail::operand(f, a, modes);
  const std::uint64_t y = detail::operand(f, b, modes);
  const bool ordered = !unordered(f, a, b).result;
  return {ordered && detail::values_equal(f, x, y), detail::comparison_flags(f, a, b, on_nan)};
}

HALFSCOPE_HD constexpr Compared less(Format f, std::uint64_t a, std::uint64_t b,
                                     OnNan on_nan = OnNan::signaling, const Modes& modes = {}) {
  const std::uint64_t x = detail::operand(f, a, modes);
  const std::uint64_t y = detail::operand(f, b, modes);
  const bool ordered = !unordered(f, a, b).result;
  const bool below = detail::order(f, x) < detail::order(f, y) && !detail::values_equal(f, x, y);
  return {ordered && below, detail::comparison_flags(f, a, b, on_nan)};
}

HALFSCOPE_HD constexpr Compared less_equal(Format f, std::uint64_t a, std::uint64_t b,
                                           OnNan on_nan = OnNan::signaling,
                                           const Modes& modes = {}) {
  const Compared below = less(f, a, b, on_nan, modes);
  return {below.result || equal(f, a, b, on_nan, modes).result, below.flags};
}

/// totalOrder(a, b), 5.10: returns true if a is at or below b in the order of all encodings.
HALFSCOPE_HD constexpr bool total_order(Format f, std::uint64_t a, std::uint64_t b) {
  return detail::order(f, a) <= detail::order(f, b);
}

namespace detail {

HALFSCOPE_HD constexpr std::uint64_t lower_of(Format f, std::uint64_t a, std::uint64_t b) {
  return order(f, b) < order(f, a) ? b : a;
}
HALFSCOPE_HD constexpr std::uint64_t upper_of(Format f, std::uint64_t a, std::uint64_t b) {
  return order(f, b) > order(f, a) ? b : a;
}

/// Result of a minimum or maximum of a number and a NaN.
enum class NumberAndNan : std::uint8_t {
  nan,            ///< 754-2019 minimum: NaN
  number,         ///< 754-2019 minimumNumber: the number; a signaling NaN still raises invalid
  quiet_ignored,  ///< 754-2008 minNum: the number, but NaN if the NaN is signaling
};

/// Returns an operand that is the result; with modes.saturate an infinity becomes finite.
HALFSCOPE_HD constexpr std::uint64_t passed_on(Format f, std::uint64_t bits, const Modes& modes) {
  return is_infinity(f, bits) ? infinite(f, (bits & f.sign_mask()) != 0, modes) : bits;
}

template <typename Choose>
HALFSCOPE_HD constexpr Rounded choose(Format f, std::uint64_t a, std::uint64_t b,
                                      const Modes& modes, NumberAndNan rule, Choose better) {
  const bool a_nan = is_nan(f, a), b_nan = is_nan(f, b);
  const std::uint64_t x = operand(f, a, modes);
  const std::uint64_t y = operand(f, b, modes);
  if (!a_nan && !b_nan) return {passed_on(f, better(f, x, y), modes), {}};
  const bool signaling = is_signaling(f, a) || is_signaling(f, b);
  const bool number =
      rule == NumberAndNan::number || (rule == NumberAndNan::quiet_ignored && !signaling);
  if (!number || (a_nan && b_nan)) return propagate_nan(f, modes, a, b);
  return {passed_on(f, a_nan ? y : x, modes), {.invalid = signaling}};
}

}  // namespace detail

/// 754-2019, 9.6: NaN if either operand is NaN; -0 < +0.
HALFSCOPE_HD constexpr Rounded minimum(Format f, std::uint64_t a, std::uint64_t b,
                                       const Modes& modes = {}) {
  return detail::choose(f, a, b, modes, detail::NumberAndNan::nan, detail::lower_of);
}
HALFSCOPE_HD constexpr Rounded maximum(Format f, std::uint64_t a, std::uint64_t b,
                                       const Modes& modes = {}) {
  return detail::choose(f, a, b, modes, detail::NumberAndNan::nan, detail::upper_of);
}

/// 754-2019, 9.6: if one operand is NaN, the other; -0 < +0.
HALFSCOPE_HD constexpr Rounded minimum_number(Format f, std::uint64_t a, std::uint64_t b,
                                              const Modes& modes = {}) {
  return detail::choose(f, a, b, modes, detail::NumberAndNan::number, detail::lower_of);
}
HALFSCOPE_HD constexpr Rounded maximum_number(Format f, std::uint64_t a, std::uint64_t b,
                                              const Modes& modes = {}) {
  return detail::choose(f, a, b, modes, detail::NumberAndNan::number, detail::upper_of);
}

/// 754-2008, 5.3.1: if one operand is a quiet NaN, the other. For zeros of both signs, which that
/// standard does not order, -0 < +0.
HALFSCOPE_HD constexpr Rounded min_num(Format f, std::uint64_t a, std::uint64_t b,
                                       const Modes& modes = {}) {
  return detail::choose(f, a, b, modes, detail::NumberAndNan::quiet_ignored, detail::lower_of);
}
HALFSCOPE_HD constexpr Rounded max_num(Format f, std::uint64_t a, std::uint64_t b,
                                       const Modes& modes = {}) {
  return detail::choose(f, a, b, modes, detail::NumberAndNan::quiet_ignored, detail::upper_of);
}

}  // namespace halfscope
