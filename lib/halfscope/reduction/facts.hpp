// SPDX-License-Identifier: Apache-2.0
// Losses of sums: counts and exact sums, which can be added in any order with the same bits.
#pragma once

#include <cstdint>

#include "halfscope/reduction/error.hpp"
#include "halfscope/reduction/exact_sum.hpp"

namespace halfscope::reduction {

/// The losses of sums of W addends each. Every addend is first rounded to the accumulator's format;
/// of that loss only `flushed` is counted, the addends rounded to zero. Then each of the W - 1
/// additions is rounded, to nearest with ties to even and gradual underflow. "Exact" is the
/// unrounded sum of the rounded addends.
///
/// An addition is lost if both operands are finite and nonzero and its result equals one of them.
/// An operand may be a partial sum (tree, pairwise). Additions of zero are never lost; they count
/// as additions.
struct Facts {
  std::uint64_t elements = 0;   ///< sums whose addends are all finite
  std::uint64_t nonfinite = 0;  ///< sums with an infinite or NaN addend, counted nowhere else
  std::uint64_t flushed = 0;    ///< nonzero addends that are zero after rounding to the format
  std::uint64_t additions = 0;  ///< elements * (W - 1)
  std::uint64_t lost = 0;
  std::uint64_t overflow = 0;  ///< elements whose result is not finite; they have no error

  // Sums over the elements without overflow. An error is computed - exact.
  ExactSum squared_error, squared_exact;
  /// In ulps of the format at the larger of |computed| and |exact|. With the larger, an exact sum
  /// of 0 needs no special rule, and no error exceeds 2^(p + 1) ulps.
  ExactSum error_ulp, squared_error_ulp;

  Facts& operator+=(const Facts& other);
  void add(const Errors& errors);

  std::uint64_t measured() const { return elements - overflow; }
  /// lost / additions; 0 without additions.
  double lost_share() const;
  /// sqrt(sum of squared errors / sum of squared exact sums). 0 / 0 is 0; infinite if all exact
  /// sums are 0 and a result is not.
  double relative_l2() const;
  double mean_error_ulp() const;
  /// The standard error of mean_error_ulp(), for independent elements; 0 for fewer than two.
  double mean_error_se() const;
};

}  // namespace halfscope::reduction
