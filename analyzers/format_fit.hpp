// SPDX-License-Identifier: Apache-2.0
// Which formats a tensor fits, each at the best power-of-two scale of its own.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/source.hpp"
#include "halfscope/number/block.hpp"
#include "halfscope/table/binade_table.hpp"

namespace halfscope::analyzers {

struct Analysis;

/// Signal-to-quantisation-noise ratio in decibels: 10 log10(sum x^2 / sum (q - x)^2) over finite
/// nonzero values. Infinite where nothing is rounded.
struct NoiseRatio {
  double low_db = 0, high_db = 0;
  bool exact = false;  ///< from whole tensors, all sums exact; else an estimate from the table
};

/// One tensor in one format.
struct FormatFit {
  std::string_view format;  ///< as in kFormats
  bool saturating = false;  ///< overflow becomes the largest finite value (FP8 casts)
  /// The largest 2^k (k from -64 to 64) at which nothing overflows; empty where no value is finite
  /// and nonzero.
  std::optional<int> best_log2;
  Classes at_1, at_best;                         ///< at scale 1, and at 2^best_log2
  bool fits_at_1 = false, fits_at_best = false;  ///< nothing overflows, flushed share in the target
  std::optional<NoiseRatio> noise_at_best;
};

/// One tensor in one MX format, whole tensors only.
struct BlockFit {
  std::string_view element;                                      ///< as in kFormats
  std::uint64_t values = 0, flushed_to_zero = 0, saturated = 0;  ///< finite nonzero values
  NoiseRatio noise;
};

/// Sets `fits`, `block_fits` and `sums` of every tensor. target_underflow: the share of finite
/// nonzero values that may be flushed. Throws log::BadInput.
void add_fits(Analysis& analysis, const Selection& selection, double target_underflow,
              const Progress& progress = {});

/// The narrowest of e5m2/e4m3 (8 bits), binary16/bfloat16 (16), tf32, binary32 that serves the
/// tensor, at scale 1 or at a scale of its own; empty when it has no fits.
struct Narrowest {
  std::string_view format;
  bool needs_scale = false;
};
struct TensorFindings;
std::optional<Narrowest> narrowest(const TensorFindings& tensor);

}  // namespace halfscope::analyzers
