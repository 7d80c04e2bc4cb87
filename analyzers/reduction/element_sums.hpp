// SPDX-License-Identifier: Apache-2.0
// Sums over the elements of one tensor. The tensor is read piece by piece, so that memory does not
// grow with it. Internal to reduction/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/reductions.hpp"

namespace halfscope::analyzers::reduction {

/// Partition of a tensor of shape [outer][width][inner] into sums.
struct Layout {
  std::size_t outer = 1, width = 1, inner = 1;
  bool by_width = false;  ///< one sum per `width`; false: one per `outer`, and `inner` is 1

  std::size_t sums() const { return by_width ? width : outer; }
  std::size_t addends() const { return by_width ? outer * inner : width * inner; }
};

/// One kind of sum of one whole tensor. The constructor and each call read the tensor's elements.
class ElementSums {
 public:
  /// The tensor must outlive this object.
  ElementSums(const frames::WholeTensor& tensor, Sum sum, const Layout& layout);

  const std::string& name() const { return tensor_.name; }
  Sum sum() const { return sum_; }
  std::size_t addends() const { return layout_.addends(); }

  /// Returns the sum of the addends' magnitudes that are at most `largest`.
  double magnitudes(double largest) const;
  /// Returns the losses of the sums. A sum with a finite addend beyond binary32's range overflows.
  Facts facts(Format format, Order order) const;

 private:
  struct Tile;
  class Reader;

  /// Calls visit(tile, addends) for all tiles; addends are in the order [addend][sum].
  template <class Visit>
  void for_each_tile(const Visit& visit) const;
  std::vector<double> elements(const Tile& tile) const;
  double addend(double element, std::size_t sum) const;
  void find_centres();
  Facts facts_of(std::size_t first, std::size_t sums, Format format, Order order) const;

  const frames::WholeTensor& tensor_;
  Sum sum_;
  Layout layout_;
  /// The value subtracted from each sum's elements: exact mean or largest element; else empty.
  std::vector<double> centres_;
  double all_ = 0;          ///< sum of the magnitudes of all finite addends
  bool all_zero_ = true;    ///< every addend is zero
  std::size_t beyond_ = 0;  ///< sums with a finite addend beyond binary32's range
};

}  // namespace halfscope::analyzers::reduction
