// SPDX-License-Identifier: Apache-2.0
// An exact sum of binary64 numbers, with the same bits for any order of addends and merges.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "halfscope/table/count/wide_sum.hpp"

namespace halfscope::reduction {

class ExactSum {
 public:
  /// Adds a finite x.
  void add(double x) {
    if (x == 0) return;
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(x), &exponent);
    const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
    (x < 0 ? negative_ : positive_).add(std::span(&significand, 1), exponent - 53);
  }
  ExactSum& operator+=(const ExactSum& other) {
    positive_.add(other.positive_);
    negative_.add(other.negative_);
    return *this;
  }

  /// Returns the sum, accurate to about 53 bits of the sum of magnitudes.
  double value() const { return positive_.rounded(0, false) - negative_.rounded(0, false); }

 private:
  static constexpr int kBase = -1152;  // below the exponent of every addend
  halfscope::detail::WideSum positive_{kBase}, negative_{kBase};
};

}  // namespace halfscope::reduction
