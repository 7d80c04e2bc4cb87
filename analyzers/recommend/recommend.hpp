// SPDX-License-Identifier: Apache-2.0
// From findings to a loss scale: `halfscope recommend`.
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
  bool censored = false;      ///< an infinity in FP16-computed data: at least this
  bool from_scalars = false;  ///< of a step without tables: `name` is the role, the tensor unknown
  /// Censored: the step was skipped at this scale, or a smaller one; of another tool's log, `step`
  /// or one before it, from `first_step` on.
  std::optional<double> skipped_at = {};
  std::optional<std::int64_t> first_step = {};
  bool bounded = false;   ///< `max_abs` is the most that it can be, as of a bucket
  bool numbered = false;  ///< the log tells no steps: `step` is the number of an entry
  /// Censored: NaN computed at this loss scale, that nothing else explains, counts as an infinity.
  std::optional<double> nan_at = {};
};

/// Whether the format has binary32's exponent range, so that gradients need no loss scale.
inline bool wide_range(Format format) { return format.emax >= kBinary32.emax; }

/// Whether a run in bfloat16 may use a format of less range, at static_scale, and the tensor that
/// decides.
struct MayUse {
  enum class Why : std::uint8_t {
    fits,       ///< it limits the scale
    flushed,    ///< too much of it becomes zero at the largest scale that overflows nowhere
    overflows,  ///< it overflows whatever the loss scale
    no_scale    ///< no loss scale can be recommended; no tensor
  };
  Why why = Why::no_scale;
  std::string tensor;
  bool yes() const { return why == Why::fits; }
};

/// Why no scale is recommended.
enum class NoScale : std::uint8_t {
  no_gradients,
  all_zero,          ///< every finite value
  no_finite_values,  ///< or none at all
  scale_unknown,     ///< infinities in values computed in FP16 at an unknown scale
  unbounded,         ///< nothing tells how large gradients are
  diverges           ///< gradients are as large as in a run that diverges; study() finds it
};

/// A static loss scale for the counted roles (weight_grad, activation_grad, and loss where it is
/// held in FP16). Scales are powers of two; empty optionals mean "none", with `no_scale` saying
/// why.
struct Recommendation {
  std::vector<std::string> logs;
  std::string_view format;          ///< that was asked about
  bool wide_format = false;         ///< wide_range() of it
  std::optional<int> static_log2;   ///< log2 of static_scale: highest, or 0 (wide_range())
  std::optional<int> highest_log2;  ///< largest k with max_abs * 2^(k + headroom) < 65520
  /// highest_log2 where parameters, and the sums of their gradients over microbatches, are FP16
  /// themselves; empty where that is no less.
  std::optional<int> highest_if_half_log2;
  std::optional<int> lowest_log2;  ///< smallest k with every tensor's flushed share in the target
  /// What is flushed is not known well enough for `lowest`: values were computed in binary16, or
  /// the log has buckets that do not tell. Then, of the latter:
  bool underflow_not_identifiable = false;
  std::optional<int> lowest_at_least_log2;  ///< no scale below this one serves
  /// The scale that serves if values which the log does not tell from zero are zeros.
  std::optional<int> lowest_if_zeros_log2;
  /// Infinities of FP16, or NaN that count as such, hide how large gradients were.
  bool overflow_not_identifiable = false;
  /// Weight gradients were clipped before they were recorded: `highest` is an upper bound.
  bool clipped = false;
  /// Steps with gradients that are not in the log: where there are any, `highest` is an upper
  /// bound.
  std::size_t incomplete_steps = 0;
  /// Of the log that lacks the most: steps at which one kind of gradients was not read that others
  /// have. Where there are any, `highest` is an upper bound.
  UnreadSteps unread;
  /// Every tensor is within the target without a scale, and nothing overflows without one.
  bool none_needed = false;
  std::optional<NoScale> no_scale;        ///< why `static_log2` is empty
  std::vector<std::string> above_target;  ///< tensors still above the target at static_scale
  std::vector<std::string> roles_found;
  underflow::RecommendOptions asked;
  double headroom_bits = 0;  ///< log2(65520 / (max_abs * static_scale)), for binary16
  std::optional<Limit> limited_by;
  underflow::Share flushed_at_1, flushed_at_recommended;  ///< over all counted tensors
  std::vector<std::int64_t> nonfinite_steps;  ///< steps with NaN or infinity in a counted role
  /// Tensors of role activation or weight that overflow at scale 1: no loss scale cures these.
  std::vector<std::string> overflow_without_cure;

  /// A run ends in what no loss scale helps against: static_scale is what finite gradients allow.
  bool beyond_scales = false;
  std::optional<NanInModel> nan_in_model;
  std::optional<MayUse> may_use;  ///< of a run in bfloat16

  // Of add_scales():
  std::vector<ScaleEvidence> scales;  ///< around the range of good scales, ascending
  std::optional<MassShare> lost_at_1, lost_at_recommended;  ///< of all counted tensors' mass
  std::optional<underflow::WorstLoss> worst_lost;           ///< at static_scale
  /// Whether what becomes zero at static_scale does no harm.
  bool harmless() const {
    return lost_at_recommended && underflow::is_negligible(*lost_at_recommended, worst_lost, asked);
  }
  std::optional<SkipBound> skip;     ///< at static_scale
  std::uint64_t steps_left_out = 0;  ///< of `skip`: infinity or NaN at any scale
  /// By the run's own policy, else PyTorch's; then by those of other frameworks that there are
  /// lines for. Those under which no step would be made are skipped, but where that is so of all;
  /// and all where one run tells of no scale that holds a step.
  std::vector<DynamicAdvice> dynamic;

  // Of add_cures():
  std::optional<RankSum> ranks;
  std::vector<LayerScale> per_layer;  ///< only where no single scale serves every tensor
  std::vector<KeepInFp32> keep_in_fp32;
  std::optional<Footprint> footprint;

  /// Whether the format has binary32's exponent range, and the gradients are in it.
  bool needs_no_scale() const { return none_needed && wide_format; }
  /// Whether infinities hide the largest gradients of every recorded step, so that the static scale
  /// is an upper bound of what can be used and no recommendation.
  bool no_step_held() const;
  /// The static scale, or why one that holds everything is not recommended.
  replay::StaticAdvice static_advice() const;
  /// Whether the recommended scale leaves tensors above the target, and no other one serves all.
  bool misses_target() const {
    return static_log2 && !underflow_not_identifiable && !above_target.empty() &&
           (!lowest_log2 || *lowest_log2 > *highest_log2);
  }
};

/// The scales that serve some tensors, as their tables tell; highest as highest_log2, lowest as
/// lowest_log2.
struct ScaleRange {
  std::optional<int> lowest_log2, highest_log2;
  bool serves() const { return lowest_log2 && highest_log2 && *lowest_log2 <= *highest_log2; }
};
class AllPeaks;  // peaks.hpp
ScaleRange scale_range(const AllPeaks& peaks,
                       const std::vector<const underflow::TensorFindings*>& tensors);

/// The static scale that magnitudes allow; recommend.cpp.
Recommendation static_scale(const Basis& basis);

/// The same, unless the run diverges.
Recommendation recommend(const Basis& basis);

/// Adds what each scale does. runs: of all logs step by step, or none.
void add_scales(Recommendation& advice, const Basis& basis,
                std::span<const replay::StepSeries> runs = {});

/// Adds settings for dynamic scaling, in FP16. runs: of all logs step by step, or none;
/// dynamic.cpp.
void add_dynamic(Recommendation& advice, const Basis& basis,
                 std::span<const replay::StepSeries> runs, const replay::Harmless& harmless);

/// Adds settings for dynamic scaling of logs without gradients, by what their own scales did.
/// tool: that wrote them; dynamic.cpp.
void add_own_scale(Recommendation& advice, frames::Tool tool,
                   std::span<const scale_history::TimelineFacts> logs);

/// Adds what goes beyond a scale: sums over ranks, layers, what to keep in FP32, memory. Reads logs
/// of several ranks again.
void add_cures(Recommendation& advice, const Basis& basis, const frames::Selection& selection);

}  // namespace halfscope::analyzers::recommend
