// SPDX-License-Identifier: Apache-2.0
// A count that is known exactly or between two bounds.
#pragma once

#include <cstdint>

namespace halfscope {

/// low <= true count <= high; exact if they are equal.
struct Interval {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  constexpr Interval() = default;
  constexpr Interval(std::uint64_t exact_count) : low(exact_count), high(exact_count) {}
  constexpr Interval(std::uint64_t lower, std::uint64_t upper) : low(lower), high(upper) {}

  constexpr bool exact() const { return low == high; }

  constexpr Interval& operator+=(const Interval& other) {
    low += other.low;
    high += other.high;
    return *this;
  }
  friend constexpr Interval operator+(Interval a, const Interval& b) { return a += b; }
  /// For a count and a part of it: returns the number that is in the whole but not in the part.
  friend constexpr Interval without(const Interval& whole, const Interval& part) {
    return {whole.low > part.high ? whole.low - part.high : 0, whole.high - part.low};
  }
  friend constexpr bool operator==(const Interval&, const Interval&) = default;
};

}  // namespace halfscope
