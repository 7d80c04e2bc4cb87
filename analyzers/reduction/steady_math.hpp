// SPDX-License-Identifier: Apache-2.0
// log2 and exp2, computed with additions, products and quotients only: the bits are the same with
// every C library. Accurate to about 1e-13.
#pragma once

#include <cmath>

namespace halfscope::analyzers::reduction {

inline constexpr double kLn2 = 0.6931471805599453;

/// Returns log2(x). x must be positive and finite.
inline double steady_log2(double x) {
  int exponent = 0;
  double fraction = std::frexp(x, &exponent);
  if (fraction < 0.7071067811865476) {
    fraction *= 2;
    --exponent;
  }
  const double t = (fraction - 1) / (fraction + 1), square = t * t;
  double sum = 0;  // series of artanh
  for (int k = 17; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent + 2 * t * sum / kLn2;
}

inline double steady_exp2(double x) {
  const double whole = std::floor(x + 0.5), rest = (x - whole) * kLn2;
  double sum = 1;
  for (int k = 13; k >= 1; --k) sum = 1 + sum * rest / k;
  return std::ldexp(sum, static_cast<int>(whole));
}

}  // namespace halfscope::analyzers::reduction
