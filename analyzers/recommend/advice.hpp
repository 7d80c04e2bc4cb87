// SPDX-License-Identifier: Apache-2.0
// What a recommendation says beyond one static scale. Each part is found by a file of its own.
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

/// What a recommendation rests on.
struct Basis {
  const underflow::Analysis& analysis;
  const overflow::OverflowFindings& overflow;
  const underflow::RecommendOptions& options;
  std::span<const reduction::Reduction> reductions = {};
};

/// What one power-of-two scale would do: the evidence for the range of good scales.
struct ScaleEvidence {
  int log2_scale = 0;
  Interval flushed, of;     ///< finite nonzero values of all counted tensors
  MassShare lost;           ///< of their mass
  Interval overflow_steps;  ///< recorded steps whose largest magnitude overflows, or perhaps does
  SkipBound skip;
};

/// Settings for dynamic loss scaling by one policy: of one run that can be replayed those that
/// serve it best, else twice the static scale and the framework's interval; of a run without
/// gradients where its own scale settled.
struct DynamicAdvice {
  policy::Policy policy;  ///< with these settings
  double init = 1;
  std::uint64_t growth_interval = 0;
  /// The steps that they skip in a replay of the recorded runs, where every log can be replayed.
  std::optional<SkipBound> replayed;
  std::uint64_t tried = 0;    ///< settings; 0: twice the static scale
  bool kept = false;          ///< no setting that was tried does better than those it had
  bool of_own_scale = false;  ///< ScaleSettings: the run's own scale tells them
};

/// What a sum over data-parallel ranks does in the format. unknown where the log has one rank.
struct RankSum {
  int ranks = 1;
  bool from_ranks = false;  ///< from the tables of each rank; else what-if for `ranks`
  /// Dividing before the sum, by the smallest power of two >= ranks: more is flushed.
  Interval flushed_before, flushed_alone, of;
  /// Dividing after: binades left between the largest possible sum and overflow at static_scale.
  double headroom_after = 0;
  std::optional<int> highest_after_log2;  ///< the largest scale at which no sum can overflow
};

/// A layer that one scale does not serve.
struct LayerScale {
  std::string layer;
  std::optional<int> lowest_log2, highest_log2;
  Interval flushed_at_static, flushed_at_own, of;
  /// Whether some scale of its own keeps the target.
  bool served() const { return lowest_log2 && highest_log2 && *lowest_log2 <= *highest_log2; }
  std::optional<double> als;  ///< adaptive loss scaling's factor, where the log has its statistics
};

/// A tensor or a kind of operation to keep in FP32.
struct KeepInFp32 {
  enum class Kind : std::uint8_t { tensor, softmax, normalization, loss, logits, reduction };
  enum class Why : std::uint8_t {
    overflows,       ///< whatever the loss scale
    limits_scale,    ///< its gradients allow `highest_log2`, all others `highest_log2_without`
    exponential,     ///< e^found is beyond the limit
    square,          ///< found^2 is
    sum_of_squares,  ///< of its inputs: found
    softmax_after,   ///< of the last activation, e^found is; autocast computes that in FP32
    sum_overflows,   ///< of `addends`, one after the other
    sum_stalls,      ///< the same: its error is `found`
    half_loss,       ///< the loss, held in FP16, at the recommended scale
    autocast_loss    ///< the same, where autocast keeps it in FP32
  };
  std::string name;  ///< tensor, module or kind
  Kind kind = Kind::tensor;
  Why why = Why::overflows;
  double found = 0, limit = 0;  ///< magnitudes; `limit` is the format's largest
  int highest_log2 = 0;
  std::optional<int> highest_log2_without = {};  ///< the scale that the rest would allow
  int binades_gained = 0;
  std::optional<reduction::Sum> sum = {};
  std::uint64_t addends = 0;

  bool by_autocast() const { return why == Why::softmax_after || why == Why::autocast_loss; }
};

/// Infinities or NaN that no rounding to 16 bits made: the first of them.
struct NanInModel {
  std::string log, tensor;
  std::int64_t step = 0;
  bool nan = false;  ///< else infinities alone
};

/// Memory, and dimensions that miss the fast kernels.
struct Footprint {
  std::uint64_t weights = 0, activations = 0;    ///< elements; activations of one microbatch
  std::uint64_t microbatches = 1;                ///< the most in the steps that these are of
  std::uint64_t bytes_fp32 = 0, bytes_fp16 = 0;  ///< weights and activations
  std::uint64_t bytes_mixed = 0;                 ///< FP16 with FP32 master weights
  enum class Extents : std::uint8_t { outputs, inputs, both };
  struct Odd {
    std::string name;
    std::vector<std::uint64_t> shape;
    Extents extents = Extents::both;  ///< that are no multiple of 8
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
