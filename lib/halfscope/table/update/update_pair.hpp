// SPDX-License-Identifier: Apache-2.0
// One pair at a time: what the passes over tensors are measured by, and what they call for the
// pairs that vectors do not take. Internal to table/. docs/numerics/counting.md, "Swamped updates".
#pragma once

#include <cstdint>

#include "halfscope/table/update/pair_outcome.hpp"

namespace halfscope {

/// Plain SGD's -lr * g / scale. `lr`, an encoding of binary32, is finite.
class SgdStep {
 public:
  /// Throws std::invalid_argument where lr is not finite in binary32, or scale not positive and
  /// finite.
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

/// Counts one pair, whatever it is.
void add_pair(UpdateTable& table, Format f, std::uint64_t w16, const Update& u, bool distributions);

/// Throws std::invalid_argument unless f is binary16 or bfloat16.
void require_weight_format(Format f);

}  // namespace halfscope
