// SPDX-License-Identifier: Apache-2.0
// Effects of rounding whole tensors, value by value: sums of squares of values and of errors, in
// formats with one scale per tensor.
//
// An error x - q is exact in binary64: both are multiples of x's last place, and |x - q| <= |x| if
// nothing overflows. Squares of binary32 sources are exact, too. Sums are computed in binary64 over
// parts that do not depend on the number of threads; kPartElements / kSumLanes additions and those
// of the lanes have a relative error below 2^-43, and parts are added with compensation (Knuth's
// two-sum).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers::formats {

inline constexpr std::size_t kPartElements = 4096;
inline constexpr std::size_t kSumLanes = 8;

/// A sum of non-negative numbers in a fixed order, with twice binary64's precision.
struct CompensatedSum {
  double high = 0, low = 0;

  void add(double x);
  double value() const { return high + low; }
};

/// A rounding of values times 2^log2_scale to a format.
struct RoundingJob {
  Format format;
  int log2_scale = 0;
  Subnormals subnormals = Subnormals::keep;
};

/// Squares of one tensor's finite values and, for each job, of their errors. Both are unscaled,
/// times 2^reference.
struct RoundingSums {
  int reference = 0;
  CompensatedSum signal;
  std::vector<CompensatedSum> noise;  ///< one per job
};

/// Adds a tensor's unscaled values: the recorded ones over 2^log2_recorded. |log2_recorded| must be
/// at most 128.
void add_rounding(RoundingSums& sums, const std::vector<RoundingJob>& jobs,
                  const frames::WholeTensor& tensor, int log2_recorded, int threads,
                  const frames::ProgressCallback& tell = {});

/// Returns the noise ratio; empty if all values are zero.
std::optional<underflow::NoiseRatio> noise_of(const RoundingSums& sums, std::size_t job);
/// The same from sums of squares.
std::optional<underflow::NoiseRatio> exact_ratio(double signal, double noise);

}  // namespace halfscope::analyzers::formats
