// SPDX-License-Identifier: Apache-2.0
// Findings about one tensor at one step, and the findings of a tensor's steps, packed into few
// bytes: a log may have a million tensors, or ten thousand steps of each.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/count/count.hpp"
#include "halfscope/table/packed_numbers.hpp"
#include "halfscope/table/rare.hpp"

namespace halfscope::analyzers::underflow {

/// Counts of a tensor's values in seven classes, which add up to `total`. The last four, in
/// `classes`, are those of the finite nonzero values after multiplication by the loss scale.
struct Counts {
  std::uint64_t total = 0;
  Interval zero;  ///< both signs
  Interval nan;
  Interval inf;
  Interval finite_nonzero;
  Classes classes;
  bool nonfinite_known = true;  ///< false: the log left infinities and NaN out without a count

  Counts& operator+=(const Counts& other);
};

/// Number of finite nonzero unscaled values in [2^exponent, 2^(exponent+1)).
struct BinadeCount {
  int exponent = 0;
  Interval count;
};

/// The counts of the occupied binades, ascending, packed into a few bytes each.
class BinadeCounts {
 public:
  class Iterator {
   public:
    using value_type = BinadeCount;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(const std::byte* at, const std::byte* end) : at_(at), end_(end), next_(at) { take(); }
    const BinadeCount& operator*() const { return now_; }
    const BinadeCount* operator->() const { return &now_; }
    Iterator& operator++() {
      at_ = next_;
      take();
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    void take() {
      if (at_ == end_) return;
      Unpacker from(at_);
      now_.exponent = static_cast<int>(from.integer());
      now_.count = from.interval();
      next_ = from.at();
    }

    const std::byte *at_ = nullptr, *end_ = nullptr, *next_ = nullptr;
    BinadeCount now_;
  };

  BinadeCounts() = default;
  BinadeCounts(std::initializer_list<BinadeCount> binades) {
    for (const BinadeCount& binade : binades) push_back(binade);
  }
  explicit BinadeCounts(std::vector<std::byte> packed) : bytes_(std::move(packed)) {}

  /// Appends a binade; it must be above all others.
  void push_back(const BinadeCount& binade) {
    Packer to(bytes_);
    to.integer(binade.exponent);
    to.interval(binade.count);
  }
  bool empty() const { return bytes_.empty(); }
  BinadeCount front() const { return *begin(); }
  Iterator begin() const { return {bytes_.data(), bytes_.data() + bytes_.size()}; }
  Iterator end() const { return {bytes_.data() + bytes_.size(), bytes_.data() + bytes_.size()}; }
  const std::vector<std::byte>& packed() const { return bytes_; }
  std::vector<BinadeCount> list() const {
    std::vector<BinadeCount> all;
    for (const BinadeCount& binade : *this) all.push_back(binade);
    return all;
  }
  void shrink_to_fit() { bytes_.shrink_to_fit(); }

 private:
  std::vector<std::byte> bytes_;
};

/// Classes of a step's values in another format.
struct StepClasses {
  Classes classes;
  Interval overflow_at_1;  ///< StepFindings::overflow_at_1

  friend bool operator==(const StepClasses&, const StepClasses&) = default;
};

struct StepFindings {
  std::int64_t step = 0;
  double scale = 1.0;       ///< loss scale in the recorded values
  double loss_scale = 1.0;  ///< loss scale that `counts` are for
  Counts counts;
  BinadeCounts binades;
  std::optional<double> max_abs;  ///< upper bound, unscaled, of finite values; empty if none
  std::optional<double> max_abs_at_least;  ///< lower bound of the largest value, if less
  std::optional<Magnitude> largest;        ///< max_abs exactly, as recorded (times scale)
  bool fits_as_is = false;                 ///< the recorded values are binary16 values
  Interval overflow_at_1;          ///< number of finite values that overflow at loss scale 1
  std::optional<Moments> moments;  ///< approximate moments of the recorded values
  /// Classes in bfloat16; empty if all values are normal numbers there. provenance.hpp.
  std::optional<StepClasses> in_bfloat16;
};

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
