// SPDX-License-Identifier: Apache-2.0
// The fast pass over pairs of weight and gradient; the update is an exact product. Internal to
// table/.
#pragma once

#include <cstddef>

#include "halfscope/table/update/update_block.hpp"

namespace halfscope {

/// |u| must be 0 or at least 2^kFirstSgdUpdate, so that RN32(u) is far from subnormal.
inline constexpr int kFirstSgdUpdate = -100;

/// Plain SGD in binary64: u = -rate * g', g' = g / scale, rounded to binary32 unless scale is a
/// power of two.
class SgdBlock {
 public:
  /// f: binary16 or bfloat16. rate: RN32 of the learning rate.
  SgdBlock(Format f, float rate, double scale);

  /// Counts n <= kPairBlock pairs of binary32 (at any alignment; NaN for elements that binary32
  /// cannot represent); stores the positions of unsupported pairs in `rare`. The processor must
  /// round to nearest and keep subnormals.
  void count(const std::byte* weights, const std::byte* gradients, std::size_t n,
             bool distributions, PairScratch& scratch) const;

 private:
  Format format_;
  double rate_, scale_;
  bool is_power_of_two_, is_binary32_;
};

}  // namespace halfscope
