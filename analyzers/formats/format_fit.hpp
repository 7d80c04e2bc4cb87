// SPDX-License-Identifier: Apache-2.0
// Finds the formats that a tensor fits, each at its best power-of-two scale.
//
// The best scale is the largest at which nothing overflows. Up to it, a larger scale is better for
// every value: 2^-k F, the numbers of format F at scale 2^k, are a subset of 2^-(k+1) F except for
// the top binade, which no value reaches if none overflows at 2^(k+1). So the nearest number is
// never farther away, and no error, no flushed share and no noise grows. Beyond it, a cast without
// saturation makes infinities or NaN, and a saturating one trades the largest values for the
// smallest. A fit is judged by the noise ratio, which counts values that become zero as errors:
// many values with little mass do not matter. Without whole tensors, the ratio is estimated from
// histograms.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/formats/recipe_choice.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/underflow/whole_findings.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/table/binade_table.hpp"

namespace halfscope::analyzers::underflow {
struct Analysis;
struct Target;
struct TensorFindings;
}  // namespace halfscope::analyzers::underflow

namespace halfscope::analyzers::formats {

/// Range of k for a tensor's own scale 2^k: these scales and their reciprocals are normal binary32
/// numbers, the type in which scales are stored.
inline constexpr int kFirstOwnLog2 = -126;
inline constexpr int kLastOwnLog2 = 126;

/// Formats that are tried, as in kFormats, narrow ones first. TF32 rounds to nearest, ties to even
/// (PTX's cvt.rn.tf32.f32). Tensor cores with binary32 operands may drop the low bits instead,
/// which doubles the largest error.
inline constexpr std::array<std::string_view, 5> kFitFormats = {"e4m3", "e5m2", "binary16",
                                                                "bfloat16", "tf32"};
/// MXFP8, MXFP6 and MXFP4 with OCP's rule for scales.
inline constexpr std::array<std::string_view, 5> kMxRecipes = {
    "mxfp8-e4m3-floor", "mxfp8-e5m2-floor", "mxfp6-e3m2-floor", "mxfp6-e2m3-floor", "mxfp4-floor"};

/// Least signal-to-quantisation-noise ratio at which a tensor fits a format: errors, with values
/// that become zero, are at most 1 % of the sum of squares. docs/stories.md has the training that
/// supports it.
inline constexpr double kEnoughDb = 20;

struct FitOptions {
  double sufficient_snr_db = kEnoughDb;
  int threads = 0;  ///< for large tensors; 0: all of the machine; results are the same
  std::vector<RecipeChoice> recipes = {};  ///< quantise the operands of products by these, too
};

/// Sets skipped_nan and skipped_inf of every tensor.
void set_skipped_nonfinite(underflow::Analysis& analysis);

/// Returns the fits that histograms show, with estimated noise. Empty if only bounds of the counts
/// are known, so that the number of flushed values is uncertain.
std::vector<underflow::FormatFit> fits_from_tables(const underflow::TensorFindings& tensor,
                                                   Subnormals subnormals, double sufficient_snr_db);

/// Sets fits_at_best from the fit's noise ratio, estimated or from whole tensors.
void judge_at_best(underflow::FormatFit& fit, const underflow::TensorFindings& tensor,
                   double sufficient_snr_db);

/// Sets fits_at_1 from `noise`, the noise ratio at scale 1: an estimate, or computed from whole
/// tensors. `subnormals`: the target's rule.
void judge_at_1(underflow::FormatFit& fit, const underflow::TensorFindings& tensor,
                Subnormals subnormals, const std::optional<underflow::NoiseRatio>& noise,
                double sufficient_snr_db);

/// Returns the narrowest of e4m3 and e5m2 (8 bits), binary16 and bfloat16 (16), tf32 and binary32
/// that fits the tensor without saturating, at scale 1 or with a scale of its own. It prefers fewer
/// bits, then no scale, then more precision. Empty if it has no fits or no finite nonzero value.
std::optional<underflow::Narrowest> narrowest(const underflow::TensorFindings& tensor);

/// Returns the ratio at scale 2^k, at which nothing may overflow. The estimate assumes that the
/// values of a histogram's segment are spread evenly over it, so that the noise is ulp^2 / 12 if a
/// segment has many representable numbers (Bennett 1948). The bounds assume the best and the worst
/// positions. Empty if no value is finite and nonzero, or if only bounds of the counts are known.
std::optional<underflow::NoiseRatio> estimate_noise(const underflow::TensorFindings& tensor,
                                                    const underflow::Target& target, int k);

}  // namespace halfscope::analyzers::formats
