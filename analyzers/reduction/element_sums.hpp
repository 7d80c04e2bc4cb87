// SPDX-License-Identifier: Apache-2.0
// Sums over the elements of one tensor, which are read piece by piece: what is held does not grow
// with the tensor. Internal to reduction/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/reductions.hpp"

namespace halfscope::analyzers::reduction {

/// Which elements of a tensor are added up: it is [outer][width][inner].
struct Layout {
  std::size_t outer = 1, width = 1, inner = 1;
  bool by_width = false;  ///< a sum for each of `width`; else one for each of `outer`: `inner` is 1

  std::size_t sums() const { return by_width ? width : outer; }
  std::size_t addends() const { return by_width ? outer * inner : width * inner; }
};

/// One kind of sum of one whole tensor. Reads the tensor's elements in the constructor, and again
/// in each call.
class ElementSums {
 public:
  /// Refers to the tensor.
  ElementSums(const frames::WholeTensor& tensor, Sum sum, const Layout& layout);

  const std::string& name() const { return tensor_.name; }
  Sum sum() const { return sum_; }
  std::size_t addends() const { return layout_.addends(); }

  /// The sum of the addends' magnitudes up to a largest one.
  double magnitudes(double largest) const;
  /// A sum with a finite addend that binary32 does not hold counts as one that overflows.
  Facts facts(Format format, Order order) const;

 private:
  struct Tile;
  class Reader;

  /// Calls visit(tile, addends) with all of them in the order [addend][sum].
  template <class Visit>
  void for_each_tile(const Visit& visit) const;
  std::vector<double> elements(const Tile& tile) const;
  double addend(double element, std::size_t sum) const;
  void find_centres();
  Facts facts_of(std::size_t first, std::size_t sums, Format format, Order order) const;

  const frames::WholeTensor& tensor_;
  Sum sum_;
  Layout layout_;
  /// Of each sum what is taken off its elements: the exact mean or the largest element; else empty.
  std::vector<double> centres_;
  double all_ = 0;          ///< magnitudes of all finite addends
  bool all_zero_ = true;    ///< every addend
  std::size_t beyond_ = 0;  ///< sums with a finite addend that binary32 does not hold
};

}  // namespace halfscope::analyzers::reduction
