// SPDX-License-Identifier: Apache-2.0
// Counting of one pair at a time: the reference for the passes over tensors, also called for pairs
// that the vector code does not support. Internal to table/. docs/numerics/counting.md.
#pragma once

#include <cstdint>

#include "halfscope/table/update/pair_outcome.hpp"

namespace halfscope {

/// An update of plain SGD, -lr * g / scale.
class SgdStep {
 public:
  /// Throws std::invalid_argument unless lr is finite in binary32 and scale positive and finite.
  SgdStep(double lr, double scale);
  Update update(Format from, std::uint64_t gradient) const;
  std::uint64_t rate() const { return rate_; }  ///< RN32(lr)
  bool scale_is_one() const { return scale_is_one_; }

 private:
  Unpacked unscaled(Format from, std::uint64_t gradient) const;

  std::uint64_t rate_;
  Unpacked scale_;
  bool scale_is_power_of_two_, scale_is_one_;
};

/// Counts one pair of any kind.
void add_pair(UpdateTable& table, Format f, std::uint64_t w16, const Update& u, bool distributions);

/// Throws std::invalid_argument unless f is binary16 or bfloat16.
void require_weight_format(Format f);

}  // namespace halfscope
