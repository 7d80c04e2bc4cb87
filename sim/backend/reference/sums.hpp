// SPDX-License-Identifier: Apache-2.0
// Sums and inner products in binary64 with as much accuracy as twice that precision gives: TwoSum
// (Knuth, The Art of Computer Programming, vol. 2, 4.2.2, theorem B), the product's error by
// Dekker's and Veltkamp's splitting (Numerische Mathematik 18, 1971), and the algorithms Sum2 and
// Dot2 made of them (Ogita, Rump, Oishi: Accurate Sum and Dot Product, SIAM J. Sci. Comput. 26,
// 2005, algorithms 4.4 and 5.3).
#pragma once

#include <cmath>
#include <cstddef>

namespace halfscope::sim::backend::reference {

/// The upper half of a's significand; a minus it is the lower half, exactly.
inline double upper_half(double a) {
  const double c = 134217729.0 * a;  // 2^27 + 1
  return c - (c - a);
}

/// a * b - p exactly, p being a * b rounded; a_high is upper_half(a). No overflow, no underflow.
inline double product_error(double a, double a_high, double b, double p) {
  const double a_low = a - a_high, b_high = upper_half(b), b_low = b - b_high;
  return ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
}

/// x + y - s exactly, s being x + y rounded.
inline double sum_error(double x, double y, double s) {
  const double z = s - x;
  return (x - (s - z)) + (y - z);
}

/// A sum whose errors are not finite has met an infinity or a NaN: then the plain sum counts.
inline double sum_of(double high, double low) { return std::isfinite(low) ? high + low : high; }

/// One sum, in the order in which it is added to.
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

/// Sums side by side: sum i gets a * b[i]. The compiler makes vectors of this loop.
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
