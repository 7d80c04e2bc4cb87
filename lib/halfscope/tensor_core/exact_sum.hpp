// SPDX-License-Identifier: Apache-2.0
// Sums of products of binary32 numbers without any rounding until the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope::tensor_core {

/// A fixed-point number wide enough for any product of two binary32 numbers, after U. Kulisch,
/// Computer Arithmetic and Validity (2013), chapter 8. Its digits are 32 bits, carries wait.
class ExactSum {
 public:
  void add(float x) { add_product(x, 1.0f); }
  void add_product(float a, float b);

  /// Rounded once to f, to nearest even. An exact zero is +0; a NaN, infinity times zero or
  /// infinities of both signs give the NaN 0x7FFFFFFF (all ones but for the sign).
  Rounded rounded(Format f) const;

 private:
  static constexpr int kLeastExponent = -298;  // two of the least subnormal numbers
  static constexpr std::size_t kDigits = 20;   // 2^256 and 2^63 of them

  void carry();

  std::array<std::int64_t, kDigits> digits_ = {};  // of 2^32, the lowest first, each of any sign
  std::int32_t waiting_ = 0;                       // additions since the last carry
  bool nan_ = false, plus_ = false, minus_ = false;
};

}  // namespace halfscope::tensor_core
