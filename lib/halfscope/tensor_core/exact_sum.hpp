// SPDX-License-Identifier: Apache-2.0
// Sums of products of binary32 numbers, rounded only at the end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope::tensor_core {

/// A fixed-point number wide enough for any product of two binary32 numbers, after U. Kulisch,
/// Computer Arithmetic and Validity (2013), chapter 8. Digits have 32 bits; carries are delayed.
class ExactSum {
 public:
  void add(float x) { add_product(x, 1.0f); }
  void add_product(float a, float b) {
    const auto x = halfscope::detail::bit_cast<std::uint32_t>(a);
    const auto y = halfscope::detail::bit_cast<std::uint32_t>(b);
    const std::uint32_t x_field = x >> 23 & 0xFF, y_field = y >> 23 & 0xFF;
    if (x_field == 0xFF || y_field == 0xFF) return add_special(x, y);
    const std::uint64_t product = significand(x, x_field) * significand(y, y_field);
    const std::uint32_t place = binade(x_field) + binade(y_field);
    const std::uint64_t low = (product & 0xFFFFFFFF) << place % 32;
    const std::uint64_t high = (product >> 32) << place % 32;
    std::int64_t* const digit = &digits_[place / 32];
    const std::int64_t sign = (x ^ y) >> 31 == 0 ? 0 : -1;  // (v ^ sign) - sign is v or -v
    digit[0] += (static_cast<std::int64_t>(low & 0xFFFFFFFF) ^ sign) - sign;
    digit[1] += (static_cast<std::int64_t>((low >> 32) + (high & 0xFFFFFFFF)) ^ sign) - sign;
    digit[2] += (static_cast<std::int64_t>(high >> 32) ^ sign) - sign;
    if (++waiting_ == 1 << 28) carry();
  }

  /// Returns the sum rounded once to f, to nearest even. An exact zero is +0. A NaN, infinity times
  /// zero or infinities of both signs result in the NaN 0x7FFFFFFF (all ones except the sign).
  Rounded rounded(Format f) const;

 private:
  static constexpr int kLeastExponent = -298;  // product of two least subnormal numbers
  static constexpr std::size_t kDigits = 20;   // enough for 2^63 products of 2^256

  static std::uint32_t binade(std::uint32_t field) { return field == 0 ? 0 : field - 1; }
  static std::uint64_t significand(std::uint32_t x, std::uint32_t field) {
    return (x & 0x7FFFFF) | (field == 0 ? 0u : 0x800000u);
  }
  void add_special(std::uint32_t x, std::uint32_t y);
  void carry();

  std::array<std::int64_t, kDigits> digits_ = {};  // base 2^32, lowest first, signed
  std::int32_t waiting_ = 0;                       // additions since the last carry
  bool nan_ = false, plus_ = false, minus_ = false;
};

}  // namespace halfscope::tensor_core
