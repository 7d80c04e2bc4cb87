// SPDX-License-Identifier: Apache-2.0
// A list of counts, stored in as few bytes each as the largest needs. A log may have a million
// tables of a hundred mostly small counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace halfscope {

/// A range of counts in a list; valid until the list changes.
class CountSpan {
 public:
  class Iterator {
   public:
    using value_type = std::uint64_t;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const std::byte* at, unsigned width) : at_(at), width_(width) {}
    std::uint64_t operator*() const { return load(at_, width_); }
    Iterator& operator++() {
      at_ += width_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const std::byte* at_ = nullptr;
    unsigned width_ = 1;
  };

  CountSpan(const std::byte* first, std::size_t size, unsigned width)
      : first_(first), size_(size), width_(width) {}

  std::size_t size() const { return size_; }
  std::uint64_t operator[](std::size_t i) const { return load(first_ + i * width_, width_); }
  Iterator begin() const { return {first_, width_}; }
  Iterator end() const { return {first_ + size_ * width_, width_}; }
  CountSpan first(std::size_t count) const { return {first_, count, width_}; }
  CountSpan subspan(std::size_t from) const {
    return {first_ + from * width_, size_ - from, width_};
  }
  std::uint64_t sum() const;

 private:
  static std::uint64_t load(const std::byte* at, unsigned width) {
    switch (width) {
      case 1: return as<std::uint8_t>(at);
      case 2: return as<std::uint16_t>(at);
      case 4: return as<std::uint32_t>(at);
      default: return as<std::uint64_t>(at);
    }
  }
  template <typename T>
  static std::uint64_t as(const std::byte* at) {
    T count;
    std::memcpy(&count, at, sizeof count);
    return count;
  }
  template <typename T>
  std::uint64_t sum_as() const;

  const std::byte* first_;
  std::size_t size_;
  unsigned width_;
};

class CountList {
 public:
  std::size_t size() const { return bytes_.size() / width_; }
  bool empty() const { return bytes_.empty(); }
  CountSpan span(std::size_t from, std::size_t count) const {
    return {bytes_.data() + from * width_, count, width_};
  }

  void add(std::size_t at, std::uint64_t more);
  /// Inserts `count` zeros before all counts; grow_back(): after them.
  void grow_front(std::size_t count);
  void grow_back(std::size_t count);

 private:
  void store(std::size_t at, std::uint64_t count);
  void widen(unsigned width);

  std::vector<std::byte> bytes_;
  unsigned width_ = 1;  // bytes of a count: 1, 2, 4 or 8
};

}  // namespace halfscope
