// SPDX-License-Identifier: Apache-2.0
// Sums that a layer or the loop computes from the elements of a tensor. The tensor is read piece by
// piece, so that memory does not grow with it. Internal to reduction/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/reductions.hpp"

namespace halfscope::analyzers::underflow {
struct LogFindings;
}

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

using TakeElements = std::function<void(const ElementSums&)>;

/// The sums of one log that have its tensors as input. They follow from the class of each module,
/// in the network's text, and from the shapes of the weights.
class ElementTerms {
 public:
  ElementTerms(const underflow::LogFindings& log, bool gradient_norms);

  /// Calls `take` for each sum of the selected tensors of one rank at one step, and `beside` with
  /// each tensor that was loaded for them.
  void take(const frames::WholeStep& step, const frames::Selection& selection,
            const TakeElements& take, const frames::TakeLoaded& beside) const;

 private:
  struct Plan {
    Sum sum = Sum::gradient;
    Layout layout;
    std::vector<std::uint64_t> shape;  ///< shape of the tensor
  };
  std::map<std::string, std::vector<Plan>, std::less<>> plans_;  ///< by tensor name
};

}  // namespace halfscope::analyzers::reduction
