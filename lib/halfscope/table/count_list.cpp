// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count_list.hpp"

#include <bit>
#include <utility>

namespace halfscope {

template <typename T>
std::uint64_t CountSpan::sum_as() const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += as<T>(first_ + i * sizeof(T));
  return sum;
}

std::uint64_t CountSpan::sum() const {
  switch (width_) {
    case 1: return sum_as<std::uint8_t>();
    case 2: return sum_as<std::uint16_t>();
    case 4: return sum_as<std::uint32_t>();
    default: return sum_as<std::uint64_t>();
  }
}

void CountList::add(std::size_t at, std::uint64_t more) {
  const std::uint64_t count = span(at, 1)[0] + more;
  const auto bytes = static_cast<unsigned>(std::bit_width(count) + 7) / 8;
  if (bytes > width_) widen(std::bit_ceil(bytes));
  store(at, count);
}

void CountList::grow_front(std::size_t count) {
  bytes_.insert(bytes_.begin(), count * width_, std::byte{0});
}

void CountList::grow_back(std::size_t count) { bytes_.resize(bytes_.size() + count * width_); }

void CountList::store(std::size_t at, std::uint64_t count) {
  std::byte* const to = bytes_.data() + at * width_;
  const auto store_as = [&](auto narrow) { std::memcpy(to, &narrow, sizeof narrow); };
  switch (width_) {
    case 1: return store_as(static_cast<std::uint8_t>(count));
    case 2: return store_as(static_cast<std::uint16_t>(count));
    case 4: return store_as(static_cast<std::uint32_t>(count));
    default: return store_as(count);
  }
}

void CountList::widen(unsigned width) {
  CountList wide;
  wide.width_ = width;
  wide.grow_back(size());
  const CountSpan all = span(0, size());
  for (std::size_t i = 0; i < all.size(); ++i) wide.store(i, all[i]);
  *this = std::move(wide);
}

}  // namespace halfscope
