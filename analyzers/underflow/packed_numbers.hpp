// SPDX-License-Identifier: Apache-2.0
// Numbers in few bytes, for what is kept of each tensor at each step: most counts are small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::underflow {

/// Appends numbers to bytes.
class Packer {
 public:
  explicit Packer(std::vector<std::byte>& to) : to_(to) {}

  /// Seven bits a byte, the lowest first; the eighth says that more follow.
  void natural(std::uint64_t n) {
    for (; n > 0x7F; n >>= 7) to_.push_back(static_cast<std::byte>(n | 0x80));
    to_.push_back(static_cast<std::byte>(n));
  }
  void integer(std::int64_t n) {  // small ones of either sign are small naturals
    natural(static_cast<std::uint64_t>(n) << 1 ^ static_cast<std::uint64_t>(n >> 63));
  }
  void real(double x) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&x);
    to_.insert(to_.end(), bytes, bytes + sizeof x);
  }
  void interval(const Interval& count) {
    natural(count.low);
    natural(count.high - count.low);
  }

 private:
  std::vector<std::byte>& to_;
};

/// Takes them off again.
class Unpacker {
 public:
  explicit Unpacker(const std::byte* from) : at_(from) {}

  std::uint64_t natural() {
    std::uint64_t n = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(*at_++);
      n |= (byte & 0x7F) << shift;
      if (byte < 0x80) return n;
    }
  }
  std::int64_t integer() {
    const std::uint64_t n = natural();
    return static_cast<std::int64_t>(n >> 1 ^ (0 - (n & 1)));
  }
  double real() {
    double x = 0;
    std::memcpy(&x, at_, sizeof x);
    at_ += sizeof x;
    return x;
  }
  Interval interval() {
    const std::uint64_t low = natural();
    return {low, low + natural()};
  }
  const std::byte* at() const { return at_; }

 private:
  const std::byte* at_;
};

}  // namespace halfscope::analyzers::underflow
