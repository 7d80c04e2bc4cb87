// SPDX-License-Identifier: Apache-2.0
// A compact encoding of numbers, for data kept of a million tensors whose counts are mostly small.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "halfscope/table/interval.hpp"

namespace halfscope {

/// Appends numbers to a byte vector.
class Packer {
 public:
  explicit Packer(std::vector<std::byte>& to) : to_(to) {}

  /// Seven bits per byte, the lowest first; the eighth bit is set if more bytes follow.
  void natural(std::uint64_t n) {
    for (; n > 0x7F; n >>= 7) to_.push_back(static_cast<std::byte>(n | 0x80));
    to_.push_back(static_cast<std::byte>(n));
  }
  void integer(std::int64_t n) {  // small integers of either sign become small naturals
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
  /// A number of several words, the lowest first; zero bytes at both ends are omitted.
  void wide(std::span<const std::uint64_t> words) {
    const auto bytes = std::as_bytes(words);
    const auto zero = [](std::byte b) { return b == std::byte{0}; };
    const auto first = std::ranges::find_if_not(bytes, zero);
    const auto last = std::find_if_not(bytes.rbegin(), std::make_reverse_iterator(first), zero);
    natural(static_cast<std::uint64_t>(first - bytes.begin()));
    natural(static_cast<std::uint64_t>(last.base() - first));
    to_.insert(to_.end(), first, last.base());
  }

 private:
  std::vector<std::byte>& to_;
};

/// Reads numbers that Packer wrote, in the same order.
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
  void wide(std::span<std::uint64_t> words) {
    std::ranges::fill(words, 0);
    const std::uint64_t first = natural(), size = natural();
    std::memcpy(std::as_writable_bytes(words).data() + first, at_, size);
    at_ += size;
  }
  const std::byte* at() const { return at_; }

 private:
  const std::byte* at_;
};

}  // namespace halfscope
