// SPDX-License-Identifier: Apache-2.0
// Overflow and its cause: headroom and its trend, the steps where infinity or NaN first appears and
// the tensors that lead there, and whether a smaller loss scale would have helped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::overflow {

/// Cause of an infinity or NaN. Each needs a different cure.
enum class Cause : std::uint8_t {
  by_scale,      ///< overflow that a smaller loss scale avoids
  at_scale_1,    ///< overflow at loss scale 1: a smaller scale does not help, a wider format does
  nan_in_model,  ///< NaN or infinity that no rounding to the format made: no scale helps
  undetermined   ///< the log does not show the cause; `why` says what is missing
};
std::string_view name_of(Cause cause);  ///< "by_scale", ...

// Thresholds in binades; docs/numerics/statistics.md, "Infinities in gradients", has the reasons.
inline constexpr double kFar = 8;  ///< headroom of nearby finite steps: overflow is unlikely
inline constexpr double kOutOfReach = 16;  ///< the same: no spike of gradients reaches so far
inline constexpr double kLowered = 8;      ///< fall of the scale that must have helped
/// Gradients this near to overflow may have been cast to FP16, whatever type is recorded.
inline constexpr double kNearLimit = 4;

/// A cause and the evidence for it.
struct Judgement {
  Cause cause = Cause::undetermined;
  std::string why;  ///< a sentence with the numbers; it does not repeat `cause`
  /// by_scale: the largest power of two that avoids overflow at all its steps.
  std::optional<int> safe_log2 = {};
  bool estimated = false;  ///< safe_log2 is from other steps, since the magnitude is unknown
  /// Smaller scales did not cure it, so its infinities are not values that a scale made too large.
  bool not_scale_related = false;
  /// Gradients with a wider format than FP16 hold its infinities, but FP16 may have made them.
  bool maybe_rounded = false;
};

/// Headroom between a tensor's largest magnitude and overflow, in binades, at the loss scale of the
/// counts if a loss scale acts on the tensor, else at 1. An infinity computed in binary16 at scale
/// S counts as 65520 / S. NaN, and infinities of wider formats, do not count.
struct Headroom {
  std::size_t tensor = 0;     ///< index into Analysis::tensors()
  double scale = 1.0;         ///< loss scale of the headroom at step least_at
  double least = 0;           ///< over the steps; zero or negative: the tensor overflows
  std::int64_t least_at = 0;  ///< step of `least`
  bool censored = false;      ///< `least` is that of an infinity: an upper bound
  double last = 0;            ///< at the last step with a value
  /// Least-squares slope of log2 of the largest finite magnitude, in binades per 1000 steps; empty
  /// below three steps. Positive: the magnitude grows toward overflow.
  std::optional<double> trend;
  /// Step at which the trend would reach overflow; empty if the trend is not clear:
  /// docs/numerics/statistics.md.
  std::optional<std::int64_t> overflow_expected_at;
  /// `least` and `last` at loss scale 1. If a loss scale acts on the tensor, subtract its log2.
  double least_at_1 = 0, last_at_1 = 0;
  std::int64_t trend_from = 0, trend_to = 0;  ///< first and last step of the trend

  /// Returns the binades by which the largest magnitude grew over the trend's steps.
  std::optional<double> growth() const {
    if (!trend) return std::nullopt;
    return *trend * static_cast<double>(trend_to - trend_from) / 1000;
  }
};

/// State of one tensor at one step.
struct TensorState {
  std::int64_t step = 0;
  std::optional<double> max_abs;  ///< finite, unscaled
  Interval nan, inf;
  Interval overflow;  ///< finite values that overflow in the target format
};

/// The event's tensor, or one that it is computed from, with its states before and at the event.
struct Lead {
  std::string name;
  std::string relation;  ///< "itself", "weight", "input", "output gradient", "gradient", "update"
  std::vector<TensorState> glimpses;
};

/// A run of consecutive recorded steps with infinities or NaN (recorded), or with finite values
/// that would overflow in the target format (what_if). Gradients, at the analysis' loss scale, and
/// other tensors, without a loss scale, have separate what-if events.
struct OverflowEvent : Judgement {
  std::string log;
  bool what_if = false;
  std::int64_t step = 0;       ///< first step
  std::int64_t last_step = 0;  ///< last consecutive recorded step
  bool to_the_end = false;     ///< `last_step` is the log's last recorded step
  std::string tensor;          ///< first such tensor in the order of computation, or a role
  log::Role role = log::Role::unknown;
  bool from_scalars = false;  ///< only scalars show it; `tensor` is the role
  Interval nan, inf;          ///< in that tensor at the first step
  Interval overflow;
  std::optional<double> loss_scale;  ///< loss scale at which the values were computed
  /// by_scale: a dynamic scale had grown until it overflowed, and the step was skipped. A dynamic
  /// scale finds its limit in this way.
  bool growth_probe = false;
  std::vector<Lead> leads;
};

struct OverflowFindings {
  std::vector<Headroom> headroom;     ///< ascending by `least`
  std::vector<OverflowEvent> events;  ///< by log and step
  /// Recorded steps of events that no scale cured: their infinities do not limit the loss scale.
  underflow::LogSteps not_scale_related;
  /// Steps whose forward pass has infinities or NaN. No scale caused those in their gradients, so
  /// they do not limit the loss scale.
  underflow::LogSteps broken_forward;
  /// Steps whose first NaN is in a gradient that was not computed in FP16 and comes from the model.
  /// It explains all later NaN of the step.
  underflow::LogSteps nan_explained;
  /// Steps of events that FP16 may have made, although the recorded format of the gradients is
  /// wider. They limit the loss scale.
  underflow::LogSteps maybe_rounded;

  /// Returns true if an infinity of the tensor at the step is a lower bound of a value
  /// (underflow::infinite_magnitude()). False if smaller scales did not cure it, for gradients of a
  /// step with a broken forward pass, and for a loss recorded before a scale multiplied it. If the
  /// type that computed gradients is unknown, FP16 may have made the infinity.
  bool bounds(const underflow::TensorFindings& tensor, const underflow::StepFindings& step) const;
  /// The same for a step's gradients, if scalars have only the largest: an infinity, or NaN. An
  /// overflow may result in NaN alone, for example as infinity less infinity, so NaN that nothing
  /// else explains is a bound like an infinity.
  bool bounds(const std::string& log, log::Role role, std::int64_t step, bool in_fp16,
              bool nan) const;
  /// The same for NaN in a gradient's tensor. False if the log does not say what type computed it.
  bool nan_bounds(const underflow::TensorFindings& tensor,
                  const underflow::StepFindings& step) const;

  /// Returns the first event that no loss scale cures and that lasts to its log's last recorded
  /// step; null if there is none, or if it consists of that step only.
  const OverflowEvent* lasting() const;
};

OverflowFindings find_overflow(const underflow::Analysis& analysis);

/// Returns only the headroom, in the order of the tensors; tensors without a value have none.
/// `found` decides which infinities count.
std::vector<Headroom> find_headroom(const underflow::Analysis& analysis,
                                    const OverflowFindings& found = {});

/// The final steps of a log's tensors, each with unexplained NaN or infinities in some tensor.
struct BrokenEnd {
  std::string log;
  std::string tensor;  ///< first tensor, in a step's order, with such values at step `first`
  /// The module or operation that computed `tensor` from finite inputs, by msprobe's names for
  /// both; empty if unknown.
  std::string source = {};
  std::int64_t first = 0, last = 0;
  std::uint64_t steps = 0;  ///< number of recorded steps from first to last; all have such values
  std::uint64_t other_tensors = 0;  ///< number of other tensors with such values
  bool nan = false, inf = false;
};

/// Returns the broken end of a log; empty if its last step has no unexplained values. Unexplained
/// are: in steps that were not skipped, NaN at a loss scale of 1 or an unknown one, and infinities
/// of values computed in a wider format than FP16, which such a scale cannot cause. BF16 values are
/// unexplained at any scale, since no scale in use comes near BF16's limit.
std::optional<BrokenEnd> broken_end(const underflow::LogFindings& log);

/// A power of two that can be moved between two layers, so that an activation which overflows
/// without any loss scale does not: one layer's weights and bias times 2^-k, the next layer's
/// weights times 2^k. The network computes the same if every module between them commutes with a
/// positive factor, as ReLU, pooling and dropout do. docs/numerics/statistics.md, "A power of two
/// between layers".
struct LayerShift {
  std::string log;
  std::string activation;   ///< the largest overflowing tensor between the layers
  double max_abs = 0;       ///< its magnitude; 65520 if infinities hide it
  bool censored = false;    ///< infinities hide it; `log2` is then a lower bound
  std::string layer, next;  ///< modules with weights
  int log2 = 0;             ///< k: the least that gives one binade of headroom
  double next_max_abs = 0;  ///< the next layer's largest weight times 2^k
  /// Counts of the layer's weights and bias over the recorded steps. 2^-k makes `flushed` of `of`
  /// zero in the format, and moves `subnormal` below its normal range, where they may lose bits.
  Interval flushed, subnormal, of;
  /// Modules between the two whose class the log lacks: they may not commute.
  std::vector<std::string> between;
  /// Both are in one torch.nn.Sequential: only the next layer reads this layer's output, and all
  /// modules between commute.
  bool in_sequence = false;
};

/// Returns the shifts of each log, one per layer, in the order of computation. Omits layers whose
/// next layer would overflow by the shift.
std::vector<LayerShift> layer_shifts(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::overflow
