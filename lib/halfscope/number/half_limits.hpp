// SPDX-License-Identifier: Apache-2.0
// std::numeric_limits and std::hash of half and the other number types. Include half.hpp instead.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>

#include "halfscope/number/half.hpp"
#include "halfscope/number/round.hpp"

/// The members have the meanings of the C++ standard: exponents are one more than IEEE 754's, min()
/// is the smallest normal number. In a format without infinity or NaN, infinity() and quiet_NaN()
/// are the values that conversions return instead.
template <halfscope::Format F>
class std::numeric_limits<halfscope::Float<F>> {
  using T = halfscope::Float<F>;
  HALFSCOPE_HD static constexpr T encoded(std::uint64_t bits) {
    return T::from_bits(static_cast<typename T::Bits>(bits));
  }
  HALFSCOPE_HD static constexpr T power_of_two(int exponent) {
    return encoded(halfscope::round_pack(F, false, 1, exponent).bits);
  }
  /// x * log10(2), truncated; correct for all |x| < 10^4.
  static constexpr int decimals(int x) { return x * 30103 / 100000; }

 public:
  // NOLINTBEGIN(readability-identifier-naming): the standard's names
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr bool is_iec559 = F.specials == halfscope::Specials::ieee;
  static constexpr bool has_infinity = F.has_infinity();
  static constexpr bool has_quiet_NaN = F.has_nan();
  static constexpr bool has_signaling_NaN = is_iec559 && F.fraction_bits() > 1;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;
  static constexpr float_round_style round_style = round_to_nearest;

  static constexpr int radix = 2;
  static constexpr int digits = F.precision;
  static constexpr int digits10 = decimals(F.precision - 1);
  static constexpr int max_digits10 = 2 + decimals(F.precision);
  static constexpr int min_exponent = F.emin() + 1;
  static constexpr int max_exponent = F.emax + 1;
  static constexpr int min_exponent10 = decimals(F.emin());
  static constexpr int max_exponent10 = decimals(F.emax + 1);

  HALFSCOPE_HD static constexpr T min() noexcept { return power_of_two(F.emin()); }
  HALFSCOPE_HD static constexpr T max() noexcept { return encoded(F.largest_finite()); }
  HALFSCOPE_HD static constexpr T lowest() noexcept { return -max(); }
  HALFSCOPE_HD static constexpr T denorm_min() noexcept { return encoded(1); }
  HALFSCOPE_HD static constexpr T epsilon() noexcept { return power_of_two(1 - F.precision); }
  HALFSCOPE_HD static constexpr T round_error() noexcept { return power_of_two(-1); }
  HALFSCOPE_HD static constexpr T infinity() noexcept { return encoded(F.infinity()); }
  HALFSCOPE_HD static constexpr T quiet_NaN() noexcept { return encoded(F.quiet_nan()); }
  HALFSCOPE_HD static constexpr T signaling_NaN() noexcept {
    return encoded(has_signaling_NaN ? F.infinity() + 1 : F.quiet_nan());
  }
  // NOLINTEND(readability-identifier-naming)
};

/// Equal numbers have equal hashes, so -0 and +0 too.
template <halfscope::Format F>
struct std::hash<halfscope::Float<F>> {
  std::size_t operator()(halfscope::Float<F> x) const noexcept {
    return x ? std::hash<typename halfscope::Float<F>::Bits>()(x.bits()) : 0;
  }
};
