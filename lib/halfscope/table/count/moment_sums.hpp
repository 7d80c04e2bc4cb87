// SPDX-License-Identifier: Apache-2.0
// moments() of a tensor that is looked at part by part.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <utility>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// Of one block, by lane. Internal to MomentSums.
struct BlockSums {
  static constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{}, squares{};
  std::uint64_t finite = 0;
};

class MomentSums {
 public:
  /// Parts in order, each but the last of a multiple of so many elements, have the whole's bits.
  static constexpr std::size_t kBlock = 4096;

  void add(const TensorView& part);
  Moments value() const;

 private:
  double sum_ = 0, sum_squares_ = 0;
  std::uint64_t finite_ = 0;
};

/// Both of a tensor, on one thread, by one pass over its memory where its dtype allows that.
std::pair<BinadeTable, Moments> measure(const TensorView& tensor);

}  // namespace halfscope
