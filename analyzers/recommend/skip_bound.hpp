// SPDX-License-Identifier: Apache-2.0
// How often a step may overflow at a scale, given how many of the recorded ones do.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "halfscope/table/interval.hpp"

namespace halfscope::analyzers::recommend {

/// The largest magnitude of one step, by the scales that hold it.
struct StepMaximum {
  std::int64_t step = 0;
  int highest_log2 = 0;   ///< log2 of the largest power of two at which it does not overflow
  bool censored = false;  ///< it may have been larger: an infinity in FP16 data
  bool unread = false;    ///< it may have been larger: not all gradients were read
  /// Of an unread step: log2 of a scale at which the run found no overflow.
  int clean_log2 = std::numeric_limits<int>::min();

  /// Whether it is unknown if the step overflows at 2^log2_scale, as far as unread gradients go.
  bool is_open(int log2_scale) const { return unread && log2_scale > clean_log2; }
};

/// A probability, its estimate and an interval of 95 %.
struct Proportion {
  double estimate = 0, low = 0, high = 1;
};

/// Of successes in trials: C. J. Clopper, E. S. Pearson, Biometrika 26, 1934. With none, or with
/// nothing else, the interval is one-sided: of none the upper end is about 3 / trials.
Proportion proportion(std::uint64_t successes, std::uint64_t trials);

/// Probability that a step overflows at a scale, or that a policy skips it, from counting alone: it
/// assumes nothing of the magnitudes, but that steps to come are like those whose gradients were
/// all read.
struct SkipBound {
  std::uint64_t steps = 0;        ///< recorded, whose gradients were all read, or known to hold
  std::uint64_t exceedances = 0;  ///< of them that overflow
  std::uint64_t perhaps = 0;      ///< others of them that may: censored
  double probability = 0;         ///< exceedances / steps
  double low = 0, high = 1;       ///< interval, of `perhaps` none and all
  std::uint64_t unread = 0;       ///< further steps, of which not all gradients were read
  std::uint64_t unread_exceedances = 0;  ///< of those that overflow by what was read
  static constexpr double kConfidence = 0.95;

  /// Of all recorded steps those that overflow: at least, and at most.
  Interval overflowing() const {
    return {exceedances + unread_exceedances, exceedances + perhaps + unread};
  }
};

/// Sets probability, low and high by the counts.
void estimate(SkipBound& bound);

/// At scale 2^log2_scale.
SkipBound skip_bound(std::span<const StepMaximum> steps, int log2_scale);

}  // namespace halfscope::analyzers::recommend
