// SPDX-License-Identifier: Apache-2.0
// An unsigned integer long enough for exact parsing of decimal text, constexpr.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/number/bits.hpp"

namespace halfscope::detail {

/// The value significand * 2^exponent. If it does not fit in 64 bits, the lowest bit is sticky: it
/// is set if any lower bit is.
struct Sticky {
  std::uint64_t significand;
  int exponent;
};

/// An unsigned integer of at most 2,560 bits. Overflow is not checked.
class WideInteger {
 public:
  constexpr void multiply_add(std::uint32_t factor, std::uint32_t addend) {
    std::uint64_t carry = addend;
    for (std::size_t i = 0; i < size_; ++i) {
      carry += std::uint64_t{limbs_[i]} * factor;
      limbs_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs_[size_++] = static_cast<std::uint32_t>(carry);
  }

  /// Divides, rounding down. Returns true if there was a remainder.
  constexpr bool divide(std::uint32_t divisor) {
    std::uint64_t rest = 0;
    for (std::size_t i = size_; i-- > 0;) {
      rest = rest << 32 | limbs_[i];
      limbs_[i] = static_cast<std::uint32_t>(rest / divisor);
      rest %= divisor;
    }
    while (size_ > 0 && limbs_[size_ - 1] == 0) --size_;
    return rest != 0;
  }

  /// Multiplies by 2^(32 * count).
  constexpr void shift_left_limbs(std::size_t count) {
    for (std::size_t i = size_; i-- > 0;) limbs_[i + count] = limbs_[i];
    for (std::size_t i = 0; i < count; ++i) limbs_[i] = 0;
    size_ += count;
  }

  /// Returns the value times 2^exponent, or slightly more if `more` (nonzero bits were dropped
  /// below). With `more`, the value must be at least 2^64.
  constexpr Sticky sticky(bool more, int exponent) const {
    std::uint64_t top = 0;
    for (std::size_t i = size_; i-- > 0;) {
      const int room = 64 - bit_width(top);
      if (room >= 32) {
        top = top << 32 | limbs_[i];
        continue;
      }
      // This limb's top bits fill the remaining bits; its other bits and the limbs below are
      // sticky.
      const std::uint64_t limb = std::uint64_t{limbs_[i]} << room;
      more |= static_cast<std::uint32_t>(limb) != 0;
      for (std::size_t below = 0; below < i; ++below) more |= limbs_[below] != 0;
      top = top << room | limb >> 32;
      return {top | (more ? 1 : 0), exponent + static_cast<int>(i) * 32 + 32 - room};
    }
    return {top | (more ? 1 : 0), exponent};
  }

 private:
  std::array<std::uint32_t, 80> limbs_ = {};  // the lowest first
  std::size_t size_ = 0;                      // number of limbs used, without leading zeros
};

}  // namespace halfscope::detail
