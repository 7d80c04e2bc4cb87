// SPDX-License-Identifier: Apache-2.0
// Which formats a tensor fits, each at the best power-of-two scale of its own.
//
// The best scale is the largest at which nothing overflows. Up to it larger is better, value by
// value: 2^-k F, the numbers of format F at scale 2^k, are a subset of 2^-(k+1) F but for the top
// binade, which no value reaches while none overflows at 2^(k+1). So the nearest number comes no
// farther away, and no error, no flushed share and no noise grows. Beyond it a cast that does not
// saturate makes infinities or NaN, and one that does trades the largest values for the smallest.
// A fit is judged by the noise ratio, which counts what becomes zero as error: many values that
// hold little do not matter.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/underflow/fit_findings.hpp"
#include "halfscope/number/block.hpp"
#include "halfscope/table/binade_table.hpp"

namespace halfscope::analyzers::underflow {
struct Analysis;
struct Target;
struct TensorFindings;
}  // namespace halfscope::analyzers::underflow

namespace halfscope::analyzers::formats {

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

/// A tensor fits a format from this signal-to-quantisation-noise ratio on: the errors hold 1 % of
/// the values' sum of squares at most, what becomes zero included. docs/stories.md has the training
/// that supports it.
inline constexpr double kEnoughDb = 20;

struct FitOptions {
  double enough_db = kEnoughDb;
  int threads = 0;  ///< for large tensors; 0 takes all the machine has; results are the same
};

/// Sets skipped_nan and skipped_inf of every tensor.
void set_skipped_nonfinite(underflow::Analysis& analysis);

/// The fits as far as tables tell them, noise estimated. None where only bounds of the counts are
/// known that leave open what is flushed.
std::vector<underflow::FormatFit> fits_from_tables(const underflow::TensorFindings& tensor,
                                                   Subnormals subnormals, double enough_db);

/// Judges the fit at the best scale by its noise ratio; whole tensors give a better one.
void judge_at_best(underflow::FormatFit& fit, const underflow::TensorFindings& tensor,
                   double enough_db);

/// Judges the fit at scale 1 by the noise ratio there, which may be an estimate or counted from
/// whole tensors. `subnormals`: the target's rule.
void judge_at_1(underflow::FormatFit& fit, const underflow::TensorFindings& tensor,
                Subnormals subnormals, const std::optional<underflow::NoiseRatio>& noise,
                double enough_db);

/// The narrowest of e4m3 and e5m2 (8 bits), binary16 and bfloat16 (16), tf32, binary32 that serves
/// the tensor without saturating, at scale 1 or at a scale of its own: fewer bits first, then
/// without a scale of its own, then more precision. Empty when it has no fits or no finite nonzero
/// value.
std::optional<underflow::Narrowest> narrowest(const underflow::TensorFindings& tensor);

}  // namespace halfscope::analyzers::formats
