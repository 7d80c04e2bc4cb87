// SPDX-License-Identifier: Apache-2.0
// Which formats a tensor fits, each at the best power-of-two scale of its own.
//
// The best scale is the largest at which nothing overflows. Up to it larger is better, value by
// value: 2^-k F, the numbers of format F at scale 2^k, are a subset of 2^-(k+1) F but for the top
// binade, which no value reaches while none overflows at 2^(k+1). So the nearest number comes no
// farther away, and no error, no flushed share and no noise grows. Beyond it a cast that does not
// saturate makes infinities or NaN, and one that does trades the largest values for the smallest.
// A fit speaks of range: what precision does to the values, the noise ratio says.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/source.hpp"
#include "halfscope/number/block.hpp"
#include "halfscope/table/binade_table.hpp"

namespace halfscope::analyzers {

struct Analysis;
struct TensorFindings;
struct Target;

/// Scales of a tensor's own are 2^k with k between these: they and their reciprocals are normal
/// binary32 numbers, which is what scales are kept in.
inline constexpr int kFirstOwnLog2 = -126;
inline constexpr int kLastOwnLog2 = 126;

/// Formats asked about, as in kFormats, narrow ones first. TF32 rounds to nearest, ties to even
/// (PTX's cvt.rn.tf32.f32); tensor cores that are handed binary32 operands may drop the low bits
/// instead, which doubles the largest error.
inline constexpr std::array<std::string_view, 5> kFitFormats = {"e4m3", "e5m2", "binary16",
                                                                "bfloat16", "tf32"};
/// Elements of the MX formats: MXFP8, MXFP6, MXFP4.
inline constexpr std::array<std::string_view, 5> kMxElements = {"e4m3", "e5m2", "e3m2", "e2m3",
                                                                "e2m1"};

/// Signal-to-quantisation-noise ratio in decibels: 10 log10(sum x^2 / sum (q - x)^2) over finite
/// nonzero values. Infinite where nothing is rounded (or by less than 2^-500 of the largest value).
struct NoiseRatio {
  double db = 0;
  double low_db = 0, high_db = 0;  ///< true bounds; of an exact one, 1e-11 around db
  bool exact = false;              ///< from whole tensors; else an estimate from the table
};

/// One tensor in one format.
struct FormatFit {
  std::string_view format;
  bool saturating = false;  ///< overflow becomes the largest finite value (FP8 casts)
  /// The largest 2^k at which nothing overflows; empty where no value is finite and nonzero, or no
  /// scale of its own is small enough.
  std::optional<int> best_log2;
  Classes at_1, at_best;  ///< at scale 1, and at 2^best_log2
  /// The flushed share is within the target and nothing overflows; of a saturating cast, values
  /// that are clamped count as flushed ones do. False where infinities of values computed in
  /// binary16 hide how large they were, but for those of skipped steps; and of no value.
  bool fits_at_1 = false, fits_at_best = false;
  std::optional<NoiseRatio> noise_at_best;
};

/// One tensor in one MX format, whole tensors only: blocks of 32 along the last dimension, scales
/// by MX 1.0's own rule (ScaleRule::floor). A block never crosses a row; what a row's end leaves
/// over is a shorter block.
struct BlockFit {
  std::string_view element;                                      ///< as in kFormats
  std::uint64_t values = 0, flushed_to_zero = 0, saturated = 0;  ///< finite nonzero values
  std::uint64_t in_nan_blocks = 0;  ///< such values beside an infinity or NaN, which takes the
                                    ///< whole block along; in none of the other numbers
  std::optional<NoiseRatio> noise;
};

struct FitOptions {
  double target_underflow = 0.001;  ///< share of finite nonzero values that may be flushed
  int threads = 0;                  ///< 0 takes all the machine has; results are the same
};

/// Sets `fits`, `block_fits`, `sums` and `whole_steps` of every tensor; each whole tensor is read
/// once. Throws log::BadInput.
void add_fits(Analysis& analysis, const Selection& selection, const FitOptions& options = {},
              const Progress& progress = {});

/// Sets `sums` and `whole_steps` alone. Throws log::BadInput.
void add_sums(Analysis& analysis, const Selection& selection, const Progress& progress = {});

/// Sets skipped_nan and skipped_inf of every tensor.
void set_skipped_nonfinite(Analysis& analysis);

/// The fits as far as tables tell them, noise estimated. None where only bounds of the counts are
/// known that leave open what is flushed.
std::vector<FormatFit> fits_from_tables(const TensorFindings& tensor, Subnormals subnormals,
                                        double target_underflow);

/// The narrowest of e4m3 and e5m2 (8 bits), binary16 and bfloat16 (16), tf32, binary32 that serves
/// the tensor without saturating, at scale 1 or at a scale of its own: fewer bits first, then
/// without a scale of its own, then more precision. Empty when it has no fits or no finite nonzero
/// value.
struct Narrowest {
  std::string_view format;
  bool needs_scale = false;
};
std::optional<Narrowest> narrowest(const TensorFindings& tensor);

}  // namespace halfscope::analyzers
