// SPDX-License-Identifier: Apache-2.0
// The fast pass over pairs of a weight and a gradient, whose update is an exact product. Internal
// to table/.
#pragma once

#include <cstddef>

#include "halfscope/table/update/update_block.hpp"

namespace halfscope {

/// |u| at least 2^kFirstSgdUpdate, or 0: RN32(u) is not subnormal, far from it.
inline constexpr int kFirstSgdUpdate = -100;

/// Plain SGD in binary64: u = -rate * g', g' = g / scale, rounded to binary32 where scale is no
/// power of two.
class SgdBlock {
 public:
  /// f: binary16 or bfloat16. rate: RN32 of the learning rate.
  SgdBlock(Format f, float rate, double scale);

  /// Counts n <= kPairBlock pairs of binary32 (at any alignment; NaN where an element is no
  /// binary32 number), but for those it leaves in `rare`. The processor must round to nearest and
  /// keep subnormals.
  void count(const std::byte* weights, const std::byte* gradients, std::size_t n,
             bool distributions, PairScratch& scratch) const;

 private:
  Format format_;
  double rate_, scale_;
  bool is_power_of_two_, is_binary32_;
};

}  // namespace halfscope
