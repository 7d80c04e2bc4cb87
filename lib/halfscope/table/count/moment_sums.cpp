// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/moment_sums.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/element.hpp"

namespace halfscope {
void MomentSums::add(const TensorView& part) {
  constexpr std::size_t kLanes = 8;
  const Format f = format_of(part.dtype);
  for (std::size_t first = 0; first < part.count; first += kBlock) {
    const std::size_t end = std::min(first + kBlock, part.count);
    std::array<double, kLanes> sums{}, squares{};
    std::uint64_t finite = 0;
    for (std::size_t i = first; i < end; ++i) {
      const double x = part.dtype == Dtype::f32
                           ? double{std::bit_cast<float>(load<std::uint32_t>(part.data, i))}
                           : to_double(f, load(part, i));
      if (!std::isfinite(x)) continue;
      ++finite;
      sums[i % kLanes] += x;
      squares[i % kLanes] += x * x;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sum_ += sums[lane];
      sum_squares_ += squares[lane];
    }
    finite_ += finite;
  }
}

Moments MomentSums::value() const {
  return {finite_ == 0 ? 0.0 : sum_ / static_cast<double>(finite_), sum_squares_};
}

Moments moments(const TensorView& tensor) {
  MomentSums sums;
  sums.add(tensor);
  return sums.value();
}

}  // namespace halfscope
