// SPDX-License-Identifier: Apache-2.0
// Derives a loss scale and what belongs to it from findings: `halfscope recommend`.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/reduction/reductions.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/share.hpp"

namespace halfscope::analyzers::recommend {

/// The unread steps of one log.
struct UnreadSteps {
  std::set<std::int64_t> steps;
  /// `lacking` of the `of` steps that have any gradient lack all gradients of `role`.
  std::size_t lacking = 0, of = 0;
  /// The role that most steps lack: activation_grad or weight_grad.
  log::Role role = log::Role::unknown;
  /// True if halfscope.torch.Recorder wrote the log, whose magnitudes_every can read the others.
  bool by_recorder = false;
};

/// The largest scale at which one recorded step does not overflow.
struct StepMaximum {
  std::int64_t step = 0;
  int highest_log2 = 0;   ///< log2 of the largest power of two at which it does not overflow
  bool censored = false;  ///< the magnitude may have been larger: an infinity in FP16 data
  bool unread = false;    ///< the magnitude may have been larger: not all gradients were read
  /// For an unread step: log2 of a scale at which the run found no overflow.
  int clean_log2 = std::numeric_limits<int>::min();

  /// Returns true if unread gradients make it unknown whether the step overflows at 2^log2_scale.
  bool is_open(int log2_scale) const { return unread && log2_scale > clean_log2; }
};

/// Probability that a step overflows at a scale, or that a policy skips it, from counts alone.
/// Nothing is assumed about magnitudes. Future steps are assumed to be like the steps whose
/// gradients were all read.
struct SkipBound {
  std::uint64_t steps = 0;        ///< recorded steps, all gradients read, or known not to overflow
  std::uint64_t exceedances = 0;  ///< `steps` that overflow
  std::uint64_t perhaps = 0;      ///< further `steps` that may overflow (censored)
  double probability = 0;         ///< exceedances / steps
  double low = 0, high = 1;       ///< 95 % interval; `high` includes all of `perhaps`
  std::uint64_t unread = 0;       ///< further steps whose gradients were not all read
  std::uint64_t unread_exceedances = 0;  ///< `unread` steps that overflow by the gradients read
  static constexpr double kConfidence = 0.95;

  /// Returns bounds of the number of recorded steps that overflow.
  Interval overflowing() const {
    return {exceedances + unread_exceedances, exceedances + perhaps + unread};
  }
};

/// The steps of one log, ascending, over the roles that a loss scale acts on. `left_out` has the
/// steps whose infinities or NaN show no magnitude: no rounding to binary16 is known to have made
/// them, smaller scales did not cure them, or their loss scale is unknown.
struct LogMaxima {
  std::string log;
  std::vector<StepMaximum> steps;
  std::vector<std::int64_t> left_out;
  UnreadSteps unread;
};

/// The magnitudes that bound the scale, from one walk over histograms and every-step scalars.
struct Peaks {
  std::vector<LogMaxima> logs;  ///< one entry per log
  /// log2 of the largest scale that keeps the headroom in a tensor; tensors without magnitudes have
  /// no entry.
  std::unordered_map<const underflow::TensorFindings*, int> highest_log2;
};

/// The inputs of a recommendation.
struct Basis {
  const underflow::Analysis& analysis;
  const overflow::OverflowFindings& overflow;
  const underflow::RecommendOptions& options;
  std::span<const reduction::Reduction> reductions = {};
  std::span<const scale_history::TimelineFacts> timelines = {};  ///< from logs of other tools
};

/// The effects of one power-of-two scale, as evidence for the range of good scales.
struct ScaleEvidence {
  int log2_scale = 0;
  Interval flushed, of;     ///< flushed values of all finite nonzero values of the counted tensors
  MassShare lost;           ///< lost share of their mass
  Interval overflow_steps;  ///< recorded steps that overflow: at least, and at most
  SkipBound skip;
};

/// Settings of one policy for dynamic loss scaling. For one run that can be replayed: the settings
/// that serve it best; for several or none: twice the static scale and the framework's interval.
/// For runs without gradients: the value at which their own scale settled.
struct DynamicAdvice {
  policy::Policy policy;  ///< the policy with these settings
  double init = 1;
  std::uint64_t growth_interval = 0;
  /// Steps that a replay of the recorded runs skips; empty if some log cannot be replayed.
  std::optional<SkipBound> replayed;
  std::uint64_t tried = 0;      ///< number of settings tried; 0 if none were
  bool kept = false;            ///< the policy keeps its settings: none that was tried is better
  bool from_run_scale = false;  ///< derived from the run's own scale (ScaleSettings)
};

/// The effect of summing weight gradients over data-parallel ranks in the target format, from each
/// rank's histograms.
struct RankSum {
  int ranks = 1;
  /// Values flushed if gradients are divided before the sum, by the smallest power of two >= ranks;
  /// values flushed without a division; all finite nonzero values.
  Interval flushed_before, flushed_alone, of;
  /// If divided after the sum: binades between the largest sum and overflow at static_scale.
  double headroom_after = 0;
  std::optional<int> highest_after_log2;  ///< largest scale at which no sum can overflow
};

/// The scales of one layer. Computed if no single scale serves all layers.
struct LayerScale {
  std::string layer;
  std::optional<int> lowest_log2, highest_log2;
  Interval flushed_at_static, flushed_at_own, of;
  /// Returns true if some scale keeps the layer within the target without overflow.
  bool served() const { return lowest_log2 && highest_log2 && *lowest_log2 <= *highest_log2; }
  std::optional<double> als;  ///< factor of adaptive loss scaling; empty without its statistics
};

/// A tensor or a kind of operation to keep in FP32.
struct KeepInFp32 {
  enum class Kind : std::uint8_t { tensor, softmax, normalization, loss, logits, reduction };
  enum class Why : std::uint8_t {
    overflows,       ///< at every loss scale
    limits_scale,    ///< its gradients allow `highest_log2`, all others `highest_log2_without`
    exponential,     ///< e^found exceeds `limit`
    square,          ///< found^2 exceeds `limit`
    sum_of_squares,  ///< `found`, the sum of its inputs' squares, exceeds `limit`
    softmax_after,   ///< e^found of the last activation exceeds it; autocast uses FP32
    sum_overflows,   ///< `found` sequential sums of `addends` values overflow
    sum_stalls,      ///< a sequential sum of `addends` values has the relative error `found`
    half_loss,       ///< the loss, held in FP16, overflows at the recommended scale
    autocast_loss    ///< the same, but autocast keeps the loss in FP32
  };
  std::string name;  ///< name of the tensor, the module or the kind of operation
  Kind kind = Kind::tensor;
  Why why = Why::overflows;
  double found = 0, limit = 0;  ///< magnitudes; `limit` is the format's largest finite value
  int highest_log2 = 0;
  std::optional<int> highest_log2_without = {};  ///< highest_log2 of all other layers
  int binades_gained = 0;
  std::optional<reduction::Sum> sum = {};
  std::uint64_t addends = 0;

  bool by_autocast() const { return why == Why::softmax_after || why == Why::autocast_loss; }
};

/// The first infinities or NaN that no rounding to 16 bits made.
struct NanInModel {
  std::string log, tensor;
  std::int64_t step = 0;
  bool nan = false;  ///< false: infinities only
};

/// Memory use, and weight dimensions for which Tensor Cores have no fast kernels.
struct Footprint {
  std::uint64_t weights = 0, activations = 0;    ///< elements; activations of one microbatch
  std::uint64_t microbatches = 1;                ///< largest number in these steps
  std::uint64_t bytes_fp32 = 0, bytes_fp16 = 0;  ///< weights and activations
  std::uint64_t bytes_mixed = 0;                 ///< FP16 with FP32 master weights
  enum class Extents : std::uint8_t { outputs, inputs, both };
  struct Odd {
    std::string name;
    std::vector<std::uint64_t> shape;
    Extents extents = Extents::both;  ///< the extents that are not multiples of 8
  };
  std::vector<Odd> not_multiples_of_8;
};

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

  Peaks peaks;  ///< for add_scales() and add_cures(), while the analysis lives

  // The following are set by add_scales().
  std::vector<ScaleEvidence> scales;  ///< around the range of good scales, ascending
  /// Lost share of all counted tensors' mass.
  std::optional<MassShare> lost_at_1, lost_at_recommended;
  std::optional<underflow::WorstLoss> worst_lost;  ///< at static_scale
  /// Returns true if the values that become zero at static_scale do no harm.
  bool harmless() const {
    return lost_at_recommended && underflow::is_negligible(*lost_at_recommended, worst_lost, asked);
  }
  /// Returns true if even the largest safe scale loses most of the gradients' sum of squares.
  bool serves_nothing() const { return lost_at_recommended && lost_at_recommended->l2.low > 0.5; }
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

/// Returns the static scale that the magnitudes allow, or NoScale::diverges if the run diverges.
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

struct SummedLoss {
  std::string log;
  double loss = 0;          ///< median of the log's first losses
  std::uint64_t steps = 0;  ///< number of these losses
  /// Returns how many times larger the loss is than a mean can be, at least. A mean cross-entropy
  /// of evenly guessed classes is the logarithm of their number.
  double times() const { return loss / kLargestMean; }
  /// ln 2^24: no vocabulary has 2^24 classes.
  static constexpr double kLargestMean = 16.64;
};

/// Returns the first log whose loss begins above twice kLargestMean; empty if there is none.
std::optional<SummedLoss> summed_loss(std::span<const underflow::LogFindings> logs);

}  // namespace halfscope::analyzers::recommend
