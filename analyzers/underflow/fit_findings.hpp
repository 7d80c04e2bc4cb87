// SPDX-License-Identifier: Apache-2.0
// How one tensor fits one format; format_fit.hpp finds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "halfscope/table/binade_table.hpp"

namespace halfscope::analyzers::underflow {

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
  /// Nothing overflows and the noise ratio is enough (formats::FitOptions); of a saturating cast at
  /// scale 1, few values are clamped or flushed. False where infinities of values computed in
  /// binary16 hide how large they were, but for those of skipped steps; and of no value.
  bool fits_at_1 = false, fits_at_best = false;
  std::optional<NoiseRatio> noise_at_best;
};

/// The narrowest format that serves a tensor; formats/format_fit.hpp.
struct Narrowest {
  std::string_view format;
  bool needs_scale = false;
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

}  // namespace halfscope::analyzers::underflow
