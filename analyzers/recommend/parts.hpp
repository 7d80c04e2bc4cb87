// SPDX-License-Identifier: Apache-2.0
// The parts of a recommendation, each computed in a file of its own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

using Tensors = std::vector<const underflow::TensorFindings*>;

/// Adds the magnitudes that bound the scale, and the bound itself: `highest_log2` and `limited_by`.
/// `tensors`: those that a loss scale acts on. If there are none, the magnitudes of scalars count
/// only if `peaks_alone`. peaks.cpp.
void add_peaks(Recommendation& advice, const Basis& basis, const Tensors& tensors,
               bool peaks_alone);

/// Returns the limit from logs of other tools: a step that was skipped at scale S had an unscaled
/// gradient of at least 65520 / S. Uses the skip at the smallest scale; empty if there is none.
/// Ignores episodes in which lowering the scale by far, or to about 1, did not help, although
/// recorded gradients, at most `largest` (unscaled), are far below overflow: no scale made those
/// values too large (docs/numerics/statistics.md, "Infinities in gradients"). peaks.cpp.
std::optional<Limit> skip_limit(const Basis& basis, std::optional<double> largest);

/// The scales that serve some tensors, from their histograms; bounds as in Recommendation.
struct ScaleRange {
  std::optional<int> lowest_log2, highest_log2;
  bool serves() const { return lowest_log2 && highest_log2 && *lowest_log2 <= *highest_log2; }
};
ScaleRange scale_range(const Basis& basis, const Peaks& peaks, const Tensors& tensors);

/// Returns the static scale that the magnitudes allow, for any run. recommend.cpp.
Recommendation static_scale(const Basis& basis);

/// Removes the static scale and sets `no_scale` to NoScale::diverges if the gradients are as large
/// as in a run that diverges (underflow::diverges()). recommend.cpp.
void refuse_divergence(Recommendation& advice, const overflow::OverflowFindings& overflow);

/// Returns the share of the values of all counted tensors that are flushed at each of the loss
/// scales from 2^first to 2^last. scales.cpp.
std::vector<underflow::Share> flushed_at(const underflow::Analysis& analysis, int first, int last);

/// An estimated probability with its 95 % interval.
struct Proportion {
  double estimate = 0, low = 0, high = 1;
};

/// Returns the proportion of successes in trials (C. J. Clopper, E. S. Pearson, Biometrika 26,
/// 1934). If no trial, or every trial, is a success, the interval is one-sided: without a success
/// the upper end is about 3 / trials.
Proportion proportion(std::uint64_t successes, std::uint64_t trials);

/// Sets probability, low and high from the counts.
void estimate(SkipBound& bound);

/// Returns the bound for loss scale 2^log2_scale.
SkipBound skip_bound(std::span<const StepMaximum> steps, int log2_scale);

std::optional<RankSum> rank_sum(const underflow::Analysis&, const Recommendation&,
                                const frames::Selection&);  // rank_sum.cpp
std::vector<LayerScale> per_layer(const Basis&, const Recommendation&);
std::vector<KeepInFp32> keep_in_fp32(const Basis&, const Recommendation&);
std::optional<Footprint> footprint(const underflow::Analysis&);

}  // namespace halfscope::analyzers::recommend
