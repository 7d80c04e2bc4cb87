// SPDX-License-Identifier: Apache-2.0
// Conversions between encodings of any two formats, through the exact value, rounded once.
#pragma once

#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/nan.hpp"
#include "halfscope/number/round.hpp"

namespace halfscope {

enum class Kind : std::uint8_t { zero, finite, infinity, nan };

/// A decoded encoding. If finite, its exact value is (-1)^negative * significand * 2^exponent.
struct Unpacked {
  Kind kind;
  bool negative;
  std::uint64_t significand;  ///< finite: not normalised; NaN: its fraction field
  int exponent;
};

HALFSCOPE_HD constexpr Unpacked unpack(Format f, std::uint64_t bits) {
  const bool negative = (bits & f.sign_mask()) != 0;
  const std::uint64_t magnitude = bits & f.magnitude_mask();
  const std::uint64_t fraction = magnitude & f.fraction_mask();
  if (magnitude == 0) return {Kind::zero, negative, 0, 0};
  if (magnitude > f.largest_finite()) {
    return {is_nan(f, bits) ? Kind::nan : Kind::infinity, negative, fraction, 0};
  }
  const int field = static_cast<int>(magnitude >> f.fraction_bits());
  if (field == 0) return {Kind::finite, negative, fraction, f.min_quantum_exponent()};
  const std::uint64_t hidden = std::uint64_t{1} << f.fraction_bits();
  return {Kind::finite, negative, fraction | hidden, f.min_quantum_exponent() + field - 1};
}

/// Converts a NaN between formats. NanPolicy::x86 (the processor's conversions, recommended by IEEE
/// 754-2019, 6.2.3) quiets it and keeps its sign and the top bits of its payload. Raises `invalid`
/// if it was signaling or if the target has no NaN.
HALFSCOPE_HD constexpr Rounded convert_nan(Format to, Format from, std::uint64_t bits,
                                           const Modes& modes = {}) {
  const bool invalid = is_signaling(from, bits) || !to.has_nan();
  if (modes.nan != NanPolicy::x86 || !to.has_nan()) {
    return {default_nan(to, modes), {.invalid = invalid}};
  }
  const std::uint64_t sign = (bits & from.sign_mask()) != 0 ? to.sign_mask() : 0;
  if (!to.has_infinity() || !from.has_infinity()) {  // E4M3 has no payload
    return {sign | to.quiet_nan(), {.invalid = invalid}};
  }
  const std::uint64_t fraction = bits & from.fraction_mask();
  const int shift = to.fraction_bits() - from.fraction_bits();
  const std::uint64_t payload = shift >= 0 ? fraction << shift : fraction >> -shift;
  return {sign | to.quiet_nan() | payload, {.invalid = invalid}};
}

/// formatOf-convertFormat, IEEE 754-2019, 5.4.2. `bits` is an encoding of `from`.
HALFSCOPE_HD constexpr Rounded convert(Format to, Format from, std::uint64_t bits,
                                       const Modes& modes = {}) {
  const Unpacked x = unpack(from, detail::operand(from, bits, modes));
  switch (x.kind) {
    case Kind::zero: return {detail::zero(to, x.negative), {}};
    case Kind::finite: return round_pack(to, x.negative, x.significand, x.exponent, modes);
    case Kind::infinity: return {detail::infinite(to, x.negative, modes), {}};
    case Kind::nan: break;
  }
  return convert_nan(to, from, bits, modes);
}

/// Returns the double nearest to an encoding; exact for at most 53 bits of precision.
HALFSCOPE_HD constexpr double to_double(Format f, std::uint64_t bits) {
  return detail::bit_cast<double>(convert(kBinary64, f, bits).bits);
}

/// Rounds a double once to format f.
HALFSCOPE_HD constexpr Rounded from_double(Format f, double x, const Modes& modes = {}) {
  return convert(f, kBinary64, detail::bit_cast<std::uint64_t>(x), modes);
}

/// Rounds a float once to format f.
HALFSCOPE_HD constexpr Rounded from_float(Format f, float x, const Modes& modes = {}) {
  return convert(f, kBinary32, detail::bit_cast<std::uint32_t>(x), modes);
}

}  // namespace halfscope
