// SPDX-License-Identifier: Apache-2.0
// Overflow and its cause: headroom and its trend, the steps where infinity or NaN first appears and
// what led there, and whether a smaller loss scale would have helped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::overflow {

/// Three different answers to an infinity or NaN.
enum class Cause : std::uint8_t {
  by_scale,      ///< overflow that a smaller loss scale avoids
  at_scale_1,    ///< overflow without any loss scale: no smaller scale helps, a wider format does
  nan_in_model,  ///< NaN or infinity that no rounding to the format made: no scale helps
  undetermined   ///< the log does not tell; `why` says what is missing
};
std::string_view name_of(Cause cause);  ///< "by_scale", ...

/// Room between a tensor's largest magnitude and overflow, in binades, at the scale it is seen at:
/// the loss scale of the counts for what a loss scale acts on, 1 for all else. An infinity computed
/// in binary16 at scale S counts as 65520 / S; NaN, and infinities of wider formats, as nothing.
struct Headroom {
  std::size_t tensor = 0;     ///< index into Analysis::tensors()
  double scale = 1.0;         ///< that it is seen at, at least_at
  double least = 0;           ///< over the steps; zero or negative: it overflows
  std::int64_t least_at = 0;  ///< step
  bool censored = false;      ///< `least` is an infinity's: there is at most this room
  double last = 0;            ///< at the last step with a value
  /// Least-squares slope of log2 of the largest finite magnitude, binades per 1000 steps; empty
  /// below three steps. Positive: it grows toward overflow.
  std::optional<double> trend;
  /// Where the trend, if it holds, reaches overflow. Only of a clear trend:
  /// docs/numerics/statistics.md.
  std::optional<std::int64_t> overflow_expected_at;
  /// At loss scale 1, so at any other: less its log2. As `least` where no loss scale acts.
  double least_at_1 = 0, last_at_1 = 0;
  std::int64_t trend_from = 0, trend_to = 0;  ///< the steps that the trend is of

  /// Binades that the largest magnitude grew by over those steps, by the trend.
  std::optional<double> growth() const {
    if (!trend) return std::nullopt;
    return *trend * static_cast<double>(trend_to - trend_from) / 1000;
  }
};

/// What one tensor looked like at one step.
struct Glimpse {
  std::int64_t step = 0;
  std::optional<double> max_abs;  ///< finite, unscaled
  Interval nan, inf;
  Interval overflow;  ///< finite values that overflow in the target format
};

/// A tensor on the way to the event, and its steps before and at it.
struct Lead {
  std::string name;
  std::string relation;  ///< "itself", "weight", "input", "output gradient", "gradient", "update"
  std::vector<Glimpse> glimpses;
};

/// A run of consecutive recorded steps with infinities or NaN (recorded), or with finite values
/// that would overflow in the target format (what-if: gradients at the analysis' loss scale; and,
/// apart from them, all else without one).
struct OverflowEvent {
  std::string log;
  bool what_if = false;
  std::int64_t step = 0;       ///< first step
  std::int64_t last_step = 0;  ///< last consecutive recorded step
  bool to_the_end = false;     ///< `last_step` is the log's last recorded step
  std::string tensor;          ///< where it first appears in the order of computation; a role where
                               ///< only scalars tell
  log::Role role = log::Role::unknown;
  bool from_scalars = false;  ///< no table shows it: `tensor` is the role
  Interval nan, inf;          ///< at the first step, in that tensor
  Interval overflow;
  std::optional<double> loss_scale;  ///< that the values carried when they were computed
  Cause cause = Cause::undetermined;
  std::string why;  ///< a sentence with the numbers; what `cause` says it does not repeat
  /// by_scale: the largest power of two that would have held at all its steps.
  std::optional<int> safe_log2;
  bool estimated = false;  ///< safe_log2 is from other steps, since the magnitude is not known
  /// by_scale: a dynamic scale had grown to where it overflows, and skipped the step. It finds its
  /// limit so.
  bool growth_probe = false;
  /// Smaller scales did not cure it: its infinities are no values that a scale made too large.
  bool not_scale_related = false;
  /// Gradients recorded as wide hold its infinities, and FP16 may have made them all the same.
  bool maybe_rounded = false;
  std::vector<Lead> leads;
};

struct OverflowFindings {
  std::vector<Headroom> headroom;     ///< least room first
  std::vector<OverflowEvent> events;  ///< by log and step
  /// The recorded steps of events that no scale cured: they bound no scale.
  underflow::LogSteps not_scale_related;
  /// Steps whose forward pass holds infinities or NaN: what their gradients hold is no scale's
  /// doing, and bounds none.
  underflow::LogSteps broken_forward;
  /// Steps whose first NaN is in a gradient that was not computed in FP16 and comes from the model.
  /// That NaN explains all later NaN of the step.
  underflow::LogSteps nan_explained;
  /// Those of events that FP16 may have made although the gradients that hold them are recorded as
  /// wide: they bound a scale.
  underflow::LogSteps maybe_rounded;

  /// Whether an infinity of the tensor at the step says how large a value was, at least
  /// (underflow::infinite_magnitude()). Not one that smaller scales did not cure, nor a gradient's
  /// of a step whose forward pass is broken, nor a loss's, which is recorded before a scale
  /// multiplies it. Where the log does not say what gradients were computed in, FP16 may have made
  /// it.
  bool bounds(const underflow::TensorFindings& tensor, const underflow::StepFindings& step) const;
  /// The same of a step's gradients, of which the scalars tell the largest alone: an infinity, or
  /// NaN. An overflow may leave NaN alone, for example of infinity less infinity, so NaN that
  /// nothing else explains bounds as an infinity does.
  bool bounds(const std::string& log, log::Role role, std::int64_t step, bool in_fp16,
              bool nan) const;
  /// The same of the NaN in a gradient's tensor. Not where the log does not say what computed it.
  bool nan_bounds(const underflow::TensorFindings& tensor,
                  const underflow::StepFindings& step) const;

  /// Of the events that no loss scale cures the first one that lasts to its log's last recorded
  /// step; null where there is none, or where it is that step alone.
  const OverflowEvent* lasting() const;
};

OverflowFindings find_overflow(const underflow::Analysis& analysis);

/// The headroom alone, in the order of the tensors; tensors without a value have none. `found` says
/// which infinities count.
std::vector<Headroom> find_headroom(const underflow::Analysis& analysis,
                                    const OverflowFindings& found = {});

}  // namespace halfscope::analyzers::overflow
