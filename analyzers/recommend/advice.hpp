// SPDX-License-Identifier: Apache-2.0
// The parts of a recommendation beyond one static scale. Each is computed in a file of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/recommend/skip_bound.hpp"
#include "analyzers/reduction/reductions.hpp"
#include "analyzers/replay/step_series.hpp"
#include "analyzers/underflow/recommend_options.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/policy/policy.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"

namespace halfscope::analyzers::underflow {
class LostMass;
}

namespace halfscope::analyzers::recommend {

struct LogMaxima;
struct Recommendation;

/// The inputs of a recommendation.
struct Basis {
  const underflow::Analysis& analysis;
  const overflow::OverflowFindings& overflow;
  const underflow::RecommendOptions& options;
  std::span<const reduction::Reduction> reductions = {};
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

/// The effect of summing weight gradients over data-parallel ranks in the target format.
struct RankSum {
  int ranks = 1;
  bool from_ranks = false;  ///< from each rank's histograms; false: estimated for `ranks` ranks
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

std::vector<ScaleEvidence> scale_evidence(const underflow::Analysis&, const Recommendation&,
                                          const underflow::LostMass&,
                                          const std::vector<LogMaxima>&);  // scale_evidence.cpp
std::optional<RankSum> rank_sum(const underflow::Analysis&, const Recommendation&,
                                const frames::Selection&);  // rank_sum.cpp
std::vector<LayerScale> per_layer(const Basis&, const Recommendation&);
std::vector<KeepInFp32> keep_in_fp32(const Basis&, const Recommendation&);
std::optional<Footprint> footprint(const underflow::Analysis&);

}  // namespace halfscope::analyzers::recommend
