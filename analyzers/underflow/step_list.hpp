// SPDX-License-Identifier: Apache-2.0
// The findings of a tensor's steps, packed into few bytes: a log may have a million tensors, or ten
// thousand steps of each.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "analyzers/underflow/step_findings.hpp"
#include "halfscope/table/rare.hpp"

namespace halfscope::analyzers::underflow {

/// Elements are returned by value: each is unpacked when it is read.
class StepList {
 public:
  class Iterator {
   public:
    using value_type = StepFindings;
    using reference = StepFindings;
    using difference_type = std::ptrdiff_t;
    using iterator_concept = std::random_access_iterator_tag;
    using iterator_category = std::input_iterator_tag;  // C++17 would require references

    /// Keeps the step that `->` points into.
    struct Arrow {
      StepFindings step;
      const StepFindings* operator->() const { return &step; }
    };

    Iterator() = default;
    Iterator(const StepList* list, difference_type at) : list_(list), at_(at) {}
    StepFindings operator*() const { return (*list_)[static_cast<std::size_t>(at_)]; }
    Arrow operator->() const { return {**this}; }
    StepFindings operator[](difference_type n) const { return *(*this + n); }
    Iterator& operator+=(difference_type n) {
      at_ += n;
      return *this;
    }
    Iterator& operator-=(difference_type n) { return *this += -n; }
    Iterator& operator++() { return *this += 1; }
    Iterator& operator--() { return *this -= 1; }
    Iterator operator++(int) { return {list_, at_++}; }
    Iterator operator--(int) { return {list_, at_--}; }
    friend Iterator operator+(Iterator it, difference_type n) { return it += n; }
    friend Iterator operator+(difference_type n, Iterator it) { return it += n; }
    friend Iterator operator-(Iterator it, difference_type n) { return it -= n; }
    friend difference_type operator-(const Iterator& a, const Iterator& b) { return a.at_ - b.at_; }
    friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.at_ <=> b.at_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    const StepList* list_ = nullptr;
    difference_type at_ = 0;
  };
  using value_type = StepFindings;
  using const_iterator = Iterator;

  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return empty() ? 0 : later_->size() + 1; }
  std::size_t bytes() const { return bytes_.size(); }  ///< size in memory
  StepFindings operator[](std::size_t i) const;
  bool contains(std::int64_t step) const { return place_of(step).has_value(); }
  /// Returns the step with this number; empty if there is none.
  std::optional<StepFindings> find(std::int64_t step) const;
  StepFindings back() const { return (*this)[size() - 1]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, static_cast<std::ptrdiff_t>(size())}; }

  void push_back(const StepFindings& step);
  /// Sorts by step; entries of the same step keep their order. No more may be added afterwards.
  void finish();
  /// Calls change(step) for each step, which may modify it.
  void change(const auto& change) {
    StepList changed;
    for (StepFindings step : *this) {
      change(step);
      changed.push_back(step);
    }
    changed.shrink_to_fit();
    *this = std::move(changed);
  }

 private:
  const std::byte* bytes_of(std::size_t i) const {
    return bytes_.data() + (i == 0 ? 0 : (*later_)[i - 1]);
  }
  std::int64_t number_of(std::size_t i) const;
  std::optional<std::size_t> place_of(std::int64_t step) const;
  void shrink_to_fit();

  std::vector<std::byte> bytes_;
  Rare<std::vector<std::size_t>> later_;  // offset of each step but the first
};

}  // namespace halfscope::analyzers::underflow
