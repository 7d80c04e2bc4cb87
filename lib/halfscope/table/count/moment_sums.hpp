// SPDX-License-Identifier: Apache-2.0
// Computes moments() of a tensor that arrives in parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <utility>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// Sums of one block, by lane. Internal to MomentSums.
struct BlockSums {
  static constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{}, squares{};
  std::uint64_t finite = 0;
};

class MomentSums {
 public:
  /// If the parts are added in order and every part but the last is a multiple of this many
  /// elements, the result has the bits of the whole.
  static constexpr std::size_t kBlock = 4096;

  void add(const TensorView& part);
  Moments value() const;

 private:
  double sum_ = 0, sum_squares_ = 0;
  std::uint64_t finite_ = 0;
};

/// Returns table and moments of a tensor, on one thread, in one pass over its memory if its dtype
/// allows that.
std::pair<BinadeTable, Moments> measure(const TensorView& tensor);

}  // namespace halfscope
