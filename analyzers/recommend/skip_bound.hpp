// SPDX-License-Identifier: Apache-2.0
// Estimates how often steps overflow at a scale from the number of recorded steps that do.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::recommend {

/// The largest scale at which one recorded step does not overflow.
struct StepMaximum {
  std::int64_t step = 0;
  int highest_log2 = 0;   ///< log2 of the largest power of two at which it does not overflow
  bool censored = false;  ///< the magnitude may have been larger: an infinity in FP16 data
  bool unread = false;    ///< the magnitude may have been larger: not all gradients were read
  /// For an unread step: log2 of a scale at which the run found no overflow.
  int clean_log2 = std::numeric_limits<int>::min();

  /// Returns true if unread gradients make it unknown whether the step overflows at 2^log2_scale.
  bool is_open(int log2_scale) const { return unread && log2_scale > clean_log2; }
};

/// An estimated probability with its 95 % interval.
struct Proportion {
  double estimate = 0, low = 0, high = 1;
};

/// Returns the proportion of successes in trials (C. J. Clopper, E. S. Pearson, Biometrika 26,
/// 1934). If no trial, or every trial, is a success, the interval is one-sided: without a success
/// the upper end is about 3 / trials.
Proportion proportion(std::uint64_t successes, std::uint64_t trials);

/// Probability that a step overflows at a scale, or that a policy skips it, from counts alone.
/// Nothing is assumed about magnitudes. Future steps are assumed to be like the steps whose
/// gradients were all read.
struct SkipBound {
  std::uint64_t steps = 0;        ///< recorded steps, all gradients read, or known not to overflow
  std::uint64_t exceedances = 0;  ///< `steps` that overflow
  std::uint64_t perhaps = 0;      ///< further `steps` that may overflow (censored)
  double probability = 0;         ///< exceedances / steps
  double low = 0, high = 1;       ///< 95 % interval; `high` includes all of `perhaps`
  std::uint64_t unread = 0;       ///< further steps whose gradients were not all read
  std::uint64_t unread_exceedances = 0;  ///< `unread` steps that overflow by the gradients read
  static constexpr double kConfidence = 0.95;

  /// Returns bounds of the number of recorded steps that overflow.
  Interval overflowing() const {
    return {exceedances + unread_exceedances, exceedances + perhaps + unread};
  }
};

/// Sets probability, low and high from the counts.
void estimate(SkipBound& bound);

/// Returns the bound for loss scale 2^log2_scale.
SkipBound skip_bound(std::span<const StepMaximum> steps, int log2_scale);

}  // namespace halfscope::analyzers::recommend
