// SPDX-License-Identifier: Apache-2.0
// Derives a loss scale from findings: `halfscope recommend`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzers/recommend/advice.hpp"
#include "analyzers/recommend/unread_steps.hpp"
#include "analyzers/replay/policy_advice.hpp"
#include "analyzers/replay/static_advice.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/recommend_options.hpp"
#include "analyzers/underflow/share.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

/// The tensor whose largest magnitude bounds the scale.
struct Limit {
  std::string log;
  std::string name;
  std::int64_t step = 0;
  double max_abs = 0;         ///< unscaled
  bool censored = false;      ///< an infinity in FP16-computed data: max_abs is a lower bound
  bool from_scalars = false;  ///< from a step without histograms: `name` is the role, the tensor is
                              ///< unknown
  /// If censored: the step was skipped at this scale or a smaller one. In another tool's log the
  /// skipped step is `step` or an earlier one, not before `first_step`.
  std::optional<double> skipped_at = {};
  std::optional<std::int64_t> first_step = {};
  bool bounded = false;   ///< `max_abs` is an upper bound, for example a bucket's end
  bool numbered = false;  ///< the log has no step numbers: `step` is the number of an entry
  /// If censored: NaN at this loss scale, without another explanation, counts as an infinity.
  std::optional<double> nan_at = {};
};

/// Returns true if the format has binary32's exponent range, so that gradients need no loss scale.
inline bool wide_range(Format format) { return format.emax >= kBinary32.emax; }

/// Decides if a run in bfloat16 may use a format with a smaller exponent range, at static_scale,
/// and names the tensor that decides it.
struct MayUse {
  enum class Why : std::uint8_t {
    fits,       ///< yes; `tensor` limits the scale
    flushed,    ///< too much of `tensor` becomes zero at the largest scale without overflow
    overflows,  ///< `tensor` overflows at every loss scale
    no_scale    ///< no loss scale can be recommended; `tensor` is empty
  };
  Why why = Why::no_scale;
  std::string tensor;
  bool yes() const { return why == Why::fits; }
};

/// The reason why no scale is recommended.
enum class NoScale : std::uint8_t {
  no_gradients,
  all_zero,          ///< every finite value is zero
  no_finite_values,  ///< no value is finite, or there are no values
  scale_unknown,     ///< values computed in FP16 are infinite, and their loss scale is unknown
  unbounded,         ///< the log does not show how large gradients are
  diverges           ///< gradients are as large as in a run that diverges; set by recommend()
};

/// A static loss scale for the counted roles (weight_grad, activation_grad, and loss if it is held
/// in FP16). All scales are powers of two; if there is none, `no_scale` has the reason.
struct Recommendation {
  std::vector<std::string> logs;
  std::string_view format;          ///< the target format
  bool wide_format = false;         ///< wide_range(format)
  std::optional<int> static_log2;   ///< log2 of static_scale: highest_log2, or 0 if none is needed
  std::optional<int> highest_log2;  ///< largest k with max_abs * 2^(k + headroom) < 65520
  /// highest_log2 if parameters, and the sums of their gradients over microbatches, are held in
  /// FP16; empty if that is not lower.
  std::optional<int> highest_if_half_log2;
  std::optional<int> lowest_log2;  ///< smallest k at which every tensor's flushed share is within
                                   ///< the target
  /// `lowest_log2` is unknown: values were computed in binary16, or the log's buckets do not show
  /// how many values are flushed. In the second case the next two fields bound it.
  bool underflow_not_identifiable = false;
  std::optional<int> lowest_at_least_log2;  ///< no scale below this one meets the target
  /// The lowest scale if all values that the log cannot distinguish from zero are zeros.
  std::optional<int> lowest_if_zeros_log2;
  /// Infinities of FP16, or NaN that count as infinities, hide how large gradients were.
  bool overflow_not_identifiable = false;
  /// Weight gradients were clipped before they were recorded: `highest` is an upper bound.
  bool clipped = false;
  /// Steps whose gradients are missing from the log. If there are any, `highest` is an upper bound.
  std::size_t incomplete_steps = 0;
  /// Steps at which one kind of gradients was not read that other steps have, of the log that lacks
  /// the most. If there are any, `highest` is an upper bound.
  UnreadSteps unread;
  /// Without a scale every tensor is within the target and nothing overflows.
  bool none_needed = false;
  std::optional<NoScale> no_scale;        ///< the reason why `static_log2` is empty
  std::vector<std::string> above_target;  ///< tensors still above the target at static_scale
  std::vector<std::string> roles_found;
  underflow::RecommendOptions asked;
  double headroom_bits = 0;  ///< log2(65520 / (max_abs * static_scale)), for binary16
  std::optional<Limit> limited_by;
  underflow::Share flushed_at_1, flushed_at_recommended;  ///< over all counted tensors
  std::vector<std::int64_t> nonfinite_steps;  ///< steps with NaN or infinity in a counted role
  /// Tensors of role activation or weight that overflow at scale 1. No loss scale prevents that.
  std::vector<std::string> overflow_without_cure;

  /// A run ends in a failure that no scale prevents; static_scale is what finite gradients allow.
  bool beyond_scales = false;
  std::optional<NanInModel> nan_in_model;
  std::optional<MayUse> may_use;  ///< empty unless the run is in bfloat16

  // The following are set by add_scales().
  std::vector<ScaleEvidence> scales;  ///< around the range of good scales, ascending
  /// Lost share of all counted tensors' mass.
  std::optional<MassShare> lost_at_1, lost_at_recommended;
  std::optional<underflow::WorstLoss> worst_lost;  ///< at static_scale
  /// Returns true if the values that become zero at static_scale do no harm.
  bool harmless() const {
    return lost_at_recommended && underflow::is_negligible(*lost_at_recommended, worst_lost, asked);
  }
  std::optional<SkipBound> skip;     ///< at static_scale
  std::uint64_t steps_left_out = 0;  ///< steps not in `skip`: infinity or NaN at every scale
  /// Settings for the run's own policy, or PyTorch's if unknown; then for every other framework
  /// that configuration lines can be printed for. Policies with which no step is made are omitted;
  /// if that is so for all, the first is kept. Empty if no step of a single run shows a scale.
  std::vector<DynamicAdvice> dynamic;

  // The following are set by add_cures().
  std::optional<RankSum> ranks;
  std::vector<LayerScale> per_layer;  ///< filled only if no single scale serves every tensor
  std::vector<KeepInFp32> keep_in_fp32;
  std::optional<Footprint> footprint;

  /// Returns true if a format with binary32's exponent range holds the gradients without a scale.
  bool needs_no_scale() const { return none_needed && wide_format; }
  /// Returns true if infinities hide the largest gradients of every recorded step. The static scale
  /// is then an upper bound of usable scales and not a recommendation.
  bool all_steps_censored() const;
  /// Returns the static scale, or the reason why none is recommended.
  replay::StaticAdvice static_advice() const;
  /// Returns true if static_scale has tensors above the target and no other scale serves all.
  bool misses_target() const {
    return static_log2 && !underflow_not_identifiable && !above_target.empty() &&
           (!lowest_log2 || *lowest_log2 > *highest_log2);
  }
};

/// The scales that serve some tensors, from their histograms; bounds as in Recommendation.
struct ScaleRange {
  std::optional<int> lowest_log2, highest_log2;
  bool serves() const { return lowest_log2 && highest_log2 && *lowest_log2 <= *highest_log2; }
};
class AllPeaks;  // peaks.hpp
ScaleRange scale_range(const AllPeaks& peaks,
                       const std::vector<const underflow::TensorFindings*>& tensors);

/// Returns the static scale that the magnitudes allow; defined in recommend.cpp.
Recommendation static_scale(const Basis& basis);

/// Returns static_scale(), or NoScale::diverges if the run diverges.
Recommendation recommend(const Basis& basis);

/// Adds the effects of each scale. `runs`: the series of all logs, or empty.
void add_scales(Recommendation& advice, const Basis& basis,
                std::span<const replay::StepSeries> runs = {});

/// Adds settings for dynamic scaling in FP16. `runs`: the series of all logs, or empty.
void add_dynamic(Recommendation& advice, const Basis& basis,
                 std::span<const replay::StepSeries> runs, const replay::Harmless& harmless);

/// Adds settings for dynamic scaling for logs without gradients, from their own scales. `tool`: the
/// tool that wrote the logs; defined in dynamic.cpp.
void add_own_scale(Recommendation& advice, frames::Tool tool,
                   std::span<const scale_history::TimelineFacts> logs);

/// Adds the advice beyond a scale: sums over ranks, scales per layer, tensors to keep in FP32,
/// memory. Reads logs of several ranks again.
void add_cures(Recommendation& advice, const Basis& basis, const frames::Selection& selection);

}  // namespace halfscope::analyzers::recommend
