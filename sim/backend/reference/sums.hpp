// SPDX-License-Identifier: Apache-2.0
// Sums and inner products in binary64, as accurate as if computed with twice that precision. They
// use TwoSum (Knuth, The Art of Computer Programming, vol. 2, 4.2.2, theorem B), the error of a
// product by Dekker's and Veltkamp's splitting (Numerische Mathematik 18, 1971), and the algorithms
// Sum2 and Dot2 (Ogita, Rump, Oishi: Accurate Sum and Dot Product, SIAM J. Sci. Comput. 26, 2005,
// algorithms 4.4 and 5.3).
#pragma once

#include <cmath>
#include <cstddef>

namespace halfscope::sim::backend::reference {

/// Returns the upper half of a's significand. a minus the result is exact.
inline double upper_half(double a) {
  const double c = 134217729.0 * a;  // 2^27 + 1
  return c - (c - a);
}

/// Returns a * b - p exactly, for p = a * b rounded and a_high = upper_half(a), without overflow or
/// underflow.
inline double product_error(double a, double a_high, double b, double p) {
  const double a_low = a - a_high, b_high = upper_half(b), b_low = b - b_high;
  return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

/// Returns x + y - s exactly, if s is x + y rounded.
inline double sum_error(double x, double y, double s) {
  const double z = s - x;
  return (x - (s - z)) + (y - z);
}

/// Returns the compensated sum. If the compensation is not finite, an infinity or NaN was added,
/// and the plain sum is returned.
inline double sum_of(double high, double low) { return std::isfinite(low) ? high + low : high; }

/// One compensated sum, in the order of the calls.
class Sum {
 public:
  explicit Sum(double start = 0) : high_(start) {}
  void add(double x) {
    const double s = high_ + x;
    low_ += sum_error(high_, x, s);
    high_ = s;
  }
  void add_product(double a, double b) {
    const double p = a * b;
    add(p);
    low_ += product_error(a, upper_half(a), b, p);
  }
  double value() const { return sum_of(high_, low_); }

 private:
  double high_, low_ = 0;
};

/// Adds a * b[i] to sum i, for `count` sums. Compilers vectorise this loop.
inline void add_products(double a, const double* __restrict b, double* __restrict high,
                         double* __restrict low, std::size_t count) {
  const double a_high = upper_half(a);
  for (std::size_t i = 0; i < count; ++i) {
    const double p = a * b[i], s = high[i] + p;
    low[i] += sum_error(high[i], p, s) + product_error(a, a_high, b[i], p);
    high[i] = s;
  }
}

}  // namespace halfscope::sim::backend::reference
