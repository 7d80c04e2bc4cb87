// SPDX-License-Identifier: Apache-2.0
// The error of a sum. Internal to reduction/.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "halfscope/number/format.hpp"

namespace halfscope::reduction {

/// The errors of one sum, or their totals over a block. See facts.hpp.
struct Errors {
  double squared_error = 0, squared_exact = 0;
  double ulp = 0, squared_ulp = 0;
};

/// The format's ulp in binary64: ulps per binade, and the smallest normal number; below it the ulp
/// is constant.
struct UlpRule {
  double steps, smallest_normal;
};

inline UlpRule ulp_rule(Format f) {
  return {std::ldexp(1.0, f.precision - 1), std::ldexp(1.0, f.emin())};
}

/// Returns the power of two at or below the magnitude of a normal number.
inline double binade(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0x7FF0000000000000u);
}

/// Returns the errors of a finite result whose exact sum is high + low.
inline Errors measure(double result, double high, double low, const UlpRule& rule) {
  const double error = (result - high) - low, exact = high + low;
  const double larger = std::max(std::fabs(result), std::fabs(exact));
  const double ulps = error / std::max(binade(larger), rule.smallest_normal) * rule.steps;
  return {error * error, exact * exact, ulps, ulps * ulps};
}

}  // namespace halfscope::reduction
