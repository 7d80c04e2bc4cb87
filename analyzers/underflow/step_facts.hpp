// SPDX-License-Identifier: Apache-2.0
// Facts about one tensor at one step beyond its counts: the scale at which its values were
// computed, and whether they overflow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Returns the constant loss scale in the manifest (1 for no scaling); empty if it has none.
std::optional<double> manifest_scale(const std::optional<log::Manifest>& manifest);

/// The scalars of one log by step.
class LogScalars {
 public:
  explicit LogScalars(const LogFindings& log);
  const log::StepScalars* at(std::int64_t step) const;
  /// Returns the step's loss scale if it is usable, else manifest_scale(); empty if the log has
  /// neither.
  std::optional<double> loss_scale(std::int64_t step) const;
  bool empty() const { return steps_.empty(); }
  /// Returns the largest magnitude that FP16 holds of a tensor whose largest is `max_abs`,
  /// unscaled. For weight gradients that FP32 adds up over microbatches, it is at most the largest
  /// microbatch, if the scalars have a finite one. docs/numerics/statistics.md.
  double in_fp16(log::Role role, std::int64_t step, double max_abs) const;
  /// The largest weight gradient by step, for steps at which FP16 holds only smaller parts of it.
  const std::map<std::int64_t, double>& sums() const { return sums_; }
  const std::vector<const log::StepScalars*>& steps() const { return steps_; }  ///< ascending

 private:
  void find_parts(const LogFindings& log);

  std::vector<const log::StepScalars*> steps_;  ///< ascending, all different
  std::optional<double> of_manifest_;
  std::unordered_map<std::int64_t, double> parts_;  ///< largest microbatch by step
  std::map<std::int64_t, double> sums_;
};

/// Returns true if an infinity in the tensor may be a value that was too large for a format with
/// binary16's range or less; also if the log does not name the tensor's type. In wider formats no
/// rounding to such a format made the infinity.
bool may_have_fp16_range(const TensorFindings& tensor);

/// Finds out, from the types that computed a log's tensors, if FP16 may have made the infinities of
/// its gradients. A loss scale can avoid such infinities.
class ComputedFormats {
 public:
  void add(const TensorFindings& tensor);
  /// Returns true if FP16 surely made none. A weight's gradient in FP32 proves nothing about the
  /// activation gradients that it was computed from, so these have to be recorded too.
  bool all_wide() const { return activation_grads_ && !narrow_; }
  bool any_narrow_gradient() const { return narrow_gradient_; }

 private:
  bool activation_grads_ = false, narrow_ = false, narrow_gradient_ = false;
};

/// Assumption about a log that has no scalars at all, so that nothing confirms its scale.
enum class WithoutScalars : std::uint8_t {
  unknown,     ///< none: the cause of an overflow must not be guessed
  as_recorded  ///< binary16 values recorded as unscaled had no scale; for bounds
};

/// Returns true if values may still contain the scale they were computed at. Values that are not
/// binary16 numbers have been unscaled since.
bool as_computed(const StepFindings& step);

/// Returns the loss scale at which a step's values were computed: the one in the values; for
/// gradients recorded unscaled the one in the step's scalars, else 1 if they are binary16 numbers.
/// Empty if it is unknown.
std::optional<double> computed_scale(const TensorFindings& tensor, const StepFindings& step,
                                     const LogScalars& scalars,
                                     WithoutScalars without = WithoutScalars::unknown);

/// Returns the scale that a step's counts are for if a loss scale acts on the tensor, else 1.
inline double scale_seen(const TensorFindings& tensor, const StepFindings& step) {
  return tensor.loss_scaled ? step.loss_scale : 1.0;
}

/// Returns true if the largest finite value of a step overflows in `format` at a loss scale. Exact.
bool overflows(const StepFindings& step, Format format, double loss_scale);

/// A largest magnitude: the recorded number and the loss scale in it. Exact.
struct StepMagnitude {
  Magnitude recorded;
  double scale = 1.0;
  bool censored = false;  ///< a lower bound: an infinity stands for the value

  double unscaled() const { return to_double(recorded) / scale; }
  double log2() const;  ///< log2 of the unscaled magnitude
  /// Returns log2 of the largest power-of-two scale at which the magnitude does not overflow.
  int highest_safe_log2(Format format) const;
};

/// Returns the largest finite magnitude of a step; empty if there is none.
std::optional<StepMagnitude> finite_magnitude(const StepFindings& step);

/// Returns the least magnitude that an infinity computed in binary16 stands for: 65520 over the
/// loss scale at which it was computed. OverflowFindings::bounds() is true for such infinities.
StepMagnitude infinite_magnitude(double computed_scale);
/// The same for a tensor's infinities; empty if that scale is unknown.
std::optional<StepMagnitude> infinite_magnitude(const TensorFindings& tensor,
                                                const StepFindings& step,
                                                const LogScalars& scalars);

/// Returns true for a loss that was recorded before the scale multiplied it. The scale did not
/// cause its infinities.
inline bool before_scaling(const TensorFindings& tensor, const StepFindings& step) {
  return tensor.role == log::Role::loss && step.scale == 1.0;
}

/// Returns true if NaN or infinities of a step's tensor, recorded at `scale`, show that the forward
/// pass is broken: those of a weight, an activation or a loss. An infinite loss that a scale has
/// multiplied does not show it: the scale may be the cause.
inline bool breaks_forward(log::Role role, double scale, const Interval& nan, const Interval& inf) {
  const bool loss = role == log::Role::loss;
  return (is_forward(role) || loss) && (nan.low != 0 || (inf.low != 0 && !(loss && scale != 1.0)));
}

inline bool nonfinite(const StepFindings& step) {
  return step.counts.nan.low != 0 || step.counts.inf.low != 0;
}

}  // namespace halfscope::analyzers::underflow
