// SPDX-License-Identifier: Apache-2.0
// An exact sum of unsigned integers times powers of two. Internal to table/ and reduction/.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace halfscope::detail {

/// A non-negative integer times 2^base. Every addend's exponent must be at least `base`.
class WideSum {
 public:
  explicit WideSum(int base = 0) : base_(base) {}

  void add(std::span<const std::uint64_t> limbs, int exponent) {
    const auto shift = static_cast<std::size_t>(exponent - base_);
    const std::size_t first = shift / 64;
    const int bits = static_cast<int>(shift % 64);
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < limbs.size(); ++i) {
      add_limb(first + i, limbs[i] << bits | (bits == 0 ? 0 : below >> (64 - bits)));
      below = limbs[i];
    }
    if (bits != 0) add_limb(first + limbs.size(), below >> (64 - bits));
  }
  /// Both sums must have the same base.
  void add(const WideSum& other) {
    for (std::size_t i = 0; i < other.limbs_.size(); ++i) add_limb(i, other.limbs_[i]);
  }

  int bit_length() const {
    for (std::size_t i = limbs_.size(); i-- > 0;) {
      if (limbs_[i] != 0)
        return static_cast<int>(64 * i) + static_cast<int>(std::bit_width(limbs_[i]));
    }
    return 0;
  }

  /// Returns the sum over 2^unit, rounded down or up to 53 bits; infinity above binary64's range.
  double rounded(int unit, bool up) const {
    const int length = bit_length();
    const int dropped = std::max(0, length - 53);
    std::uint64_t top = 0;
    for (int i = length - 1; i >= dropped; --i) top = top << 1 | (bit(i) ? 1 : 0);
    bool rest = false;
    for (int i = 0; i < dropped && !rest; ++i) rest = bit(i);
    const double exact =
        std::ldexp(static_cast<double>(top + (up && rest ? 1 : 0)), dropped + base_ - unit);
    // ldexp rounds if the result is subnormal; one step outward covers that.
    const bool tiny = top != 0 && exact < 0x1p-1021;
    return !tiny ? exact
           : up  ? std::nextafter(exact, 1.0)
                 : std::max(0.0, std::nextafter(exact, 0.0));
  }

  /// Returns part / whole, rounded once to the nearest binary64, ties to even. Both must have the
  /// same base, and part <= whole; 0 / 0 is 0.
  static double ratio(const WideSum& part, const WideSum& whole) {
    const int length = part.bit_length();
    if (length == 0) return 0;
    WideSum rest = part;
    int exponent = whole.bit_length() - length;  // rest * 2^exponent is as long as whole
    rest.shift_left(exponent);
    if (rest.compare(whole) < 0) {
      rest.twice();
      ++exponent;
    }
    std::uint64_t quotient = 0;  // 54 bits: 53 and a rounding bit; the first is set
    for (int i = 0; i < 54; ++i) {
      const bool one = rest.compare(whole) >= 0;
      if (one) rest.subtract(whole);
      quotient = quotient << 1 | (one ? 1 : 0);
      rest.twice();
    }
    const bool half = (quotient & 1) != 0;
    const bool odd = (quotient & 2) != 0;
    const std::uint64_t kept = (quotient >> 1) + (half && (odd || rest.bit_length() != 0) ? 1 : 0);
    return std::ldexp(static_cast<double>(kept), -exponent - 52);
  }

 private:
  bool bit(int i) const { return (limbs_[static_cast<std::size_t>(i) / 64] >> (i % 64) & 1) != 0; }
  void add_limb(std::size_t i, std::uint64_t limb) {
    if (limb == 0) return;
    if (i >= limbs_.size()) limbs_.resize(i + 1);
    limbs_[i] += limb;
    if (limbs_[i] < limb) add_limb(i + 1, 1);
  }
  void shift_left(int count) {
    if (count == 0 || limbs_.empty()) return;
    WideSum shifted(0);
    shifted.add(limbs_, count);
    limbs_ = std::move(shifted.limbs_);
  }
  void twice() {
    std::uint64_t carry = 0;
    for (std::uint64_t& limb : limbs_) carry = std::exchange(limb, limb << 1 | carry) >> 63;
    if (carry != 0) limbs_.push_back(carry);
  }
  int compare(const WideSum& other) const {
    for (std::size_t i = std::max(limbs_.size(), other.limbs_.size()); i-- > 0;) {
      const std::uint64_t a = i < limbs_.size() ? limbs_[i] : 0;
      const std::uint64_t b = i < other.limbs_.size() ? other.limbs_[i] : 0;
      if (a != b) return a < b ? -1 : 1;
    }
    return 0;
  }
  /// *this must be at least `other`.
  void subtract(const WideSum& other) {
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i < limbs_.size(); ++i) {
      const std::uint64_t b = i < other.limbs_.size() ? other.limbs_[i] : 0;
      const std::uint64_t without = limbs_[i] - b;
      const std::uint64_t next = limbs_[i] < b || without < borrow ? 1 : 0;
      limbs_[i] = without - borrow;
      borrow = next;
    }
  }

  int base_;
  std::vector<std::uint64_t> limbs_;  // the lowest first
};

}  // namespace halfscope::detail
