// SPDX-License-Identifier: Apache-2.0
// What rounding does to whole tensors, value by value: sums of squares of values and of errors, in
// formats with one scale a tensor and in MX formats.
//
// An error x - q is a binary64 number: both are multiples of x's last place, and |x - q| <= |x|
// wherever nothing overflows. Squares of binary32 sources are exact, too. Sums are taken in
// binary64 over parts that do not depend on the number of threads; kPartElements / kSumLanes
// additions and those of the lanes leave a relative error below 2^-43, and parts are added with
// compensation (Knuth's two-sum).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers::formats {

inline constexpr std::size_t kPartElements = 4096;
inline constexpr std::size_t kSumLanes = 8;

/// Non-negative numbers, added in a fixed order to twice binary64's precision.
struct CompensatedSum {
  double high = 0, low = 0;

  void add(double x);
  double value() const { return high + low; }
};

/// Values times 2^log2_scale, rounded to a format.
struct RoundingJob {
  Format format;
  int log2_scale = 0;
  Subnormals subnormals = Subnormals::keep;
};

/// Squares of one tensor's finite values and, for each job, of their errors; both unscaled, times
/// 2^reference.
struct RoundingSums {
  int reference = 0;
  CompensatedSum signal;
  std::vector<CompensatedSum> noise;  ///< one a job
};

/// The same of one MX format; both sums in units of 2^-reference, NaN blocks left out.
struct BlockSums {
  underflow::BlockFit counts;
  int reference = 0;
  CompensatedSum signal, noise;
};

/// Adds a tensor's unscaled values, which are the recorded ones over 2^log2_recorded; 128 at most,
/// either way.
void add_rounding(RoundingSums& sums, const std::vector<RoundingJob>& jobs,
                  const frames::WholeTensor& tensor, int log2_recorded, int threads,
                  const frames::ProgressCallback& tell = {});
void add_blocks(std::array<BlockSums, kMxElements.size()>& sums, const frames::WholeTensor& tensor,
                int log2_recorded, int threads, const frames::ProgressCallback& tell = {});

/// Empty where all is zero.
std::optional<underflow::NoiseRatio> noise_of(const RoundingSums& sums, std::size_t job);
std::optional<underflow::NoiseRatio> noise_of(const BlockSums& sums);

}  // namespace halfscope::analyzers::formats
