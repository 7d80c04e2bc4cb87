// SPDX-License-Identifier: Apache-2.0
// What is known of one tensor at one step beyond its counts: the scale its values were computed at,
// and whether they overflow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// The scale of a run that never says one but says that it had none (1), or a fixed one.
std::optional<double> manifest_scale(const std::optional<log::Manifest>& manifest);

/// The scalars of one log by step.
class LogScalars {
 public:
  explicit LogScalars(const LogFindings& log);
  const log::StepScalars* at(std::int64_t step) const;
  /// A usable loss scale of the step, else the one that manifest_scale() says; empty where the log
  /// does not say.
  std::optional<double> loss_scale(std::int64_t step) const;
  bool empty() const { return steps_.empty(); }
  /// What FP16 holds of a tensor whose largest magnitude is max_abs, unscaled: of weight gradients
  /// that FP32 adds up over microbatches no more than the largest part, where the scalars tell it
  /// and it is finite. docs/numerics/statistics.md.
  double in_fp16(log::Role role, std::int64_t step, double max_abs) const;
  /// The step and its largest weight gradient where FP16 holds less than that sum.
  const std::map<std::int64_t, double>& sums() const { return sums_; }
  const std::vector<const log::StepScalars*>& steps() const { return steps_; }  ///< ascending

 private:
  void find_parts(const LogFindings& log);

  std::vector<const log::StepScalars*> steps_;  ///< ascending, all different
  std::optional<double> of_manifest_;
  std::unordered_map<std::int64_t, double> parts_;  ///< by step
  std::map<std::int64_t, double> sums_;
};

/// Whether an infinity in the tensor is a value that was too large for a 16-bit or narrower format
/// with binary16's range or less. In wider formats it is one that no rounding to such a format
/// made. Where the log does not say it may be one.
bool computed_narrow(const TensorFindings& tensor);

/// Whether FP16 may have made the infinities of a log's gradients, which a loss scale avoids: told
/// by what its tensors were computed in.
class ComputedFormats {
 public:
  void add(const TensorFindings& tensor);
  /// Surely not. A weight's gradient in FP32 tells nothing of the activations' that came into it:
  /// theirs have to be recorded too.
  bool all_wide() const { return activation_grads_ && !narrow_; }
  bool any_narrow_gradient() const { return narrow_gradient_; }

 private:
  bool activation_grads_ = false, narrow_ = false, narrow_gradient_ = false;
};

/// What is taken of a log that has no scalars at all, so that nothing confirms its scale.
enum class WithoutScalars : std::uint8_t {
  unknown,     ///< nothing: why values overflow must not be guessed
  as_recorded  ///< that binary16 values recorded as unscaled have no scale: for a bound
};

/// Whether the scale that values carry may be the one they were computed at: other values than
/// binary16's have been unscaled since.
bool as_computed(const StepFindings& step);

/// The loss scale at which a step's values were computed: the one they carry. For gradients
/// recorded unscaled it is the one the step's scalars tell; where these tell none, 1 if they are
/// binary16 values as they are. Else empty: not known.
std::optional<double> computed_scale(const TensorFindings& tensor, const StepFindings& step,
                                     const LogScalars& scalars,
                                     WithoutScalars without = WithoutScalars::unknown);

/// The scale a step is seen at: the one its counts are for where a loss scale acts on the tensor,
/// else 1.
inline double scale_seen(const TensorFindings& tensor, const StepFindings& step) {
  return tensor.loss_scaled ? step.loss_scale : 1.0;
}

/// Whether the largest finite value of a step overflows in `format` at a loss scale. Exact.
bool overflows(const StepFindings& step, Format format, double loss_scale);

/// A largest magnitude: as recorded, over the scale that it carries. Exact.
struct StepMagnitude {
  Magnitude recorded;
  double scale = 1.0;
  bool censored = false;  ///< it may have been larger: an infinity stands for it

  double unscaled() const { return to_double(recorded) / scale; }
  double log2() const;  ///< unscaled
  /// log2 of the largest power-of-two scale at which it does not overflow.
  int highest_safe_log2(Format format) const;
};

/// The largest finite magnitude of a step.
std::optional<StepMagnitude> finite_magnitude(const StepFindings& step);

/// The least that an infinity computed in binary16 stands for: 65520 over the loss scale that it
/// was computed at. OverflowFindings::bounds() says of which that holds.
StepMagnitude infinite_magnitude(double computed_scale);
/// The same of a tensor's infinities; empty where that scale is not known.
std::optional<StepMagnitude> infinite_magnitude(const TensorFindings& tensor,
                                                const StepFindings& step,
                                                const LogScalars& scalars);

/// A loss is recorded before the scale multiplies it: then its infinities are not the scale's
/// doing.
inline bool before_scaling(const TensorFindings& tensor, const StepFindings& step) {
  return tensor.role == log::Role::loss && step.scale == 1.0;
}

/// Whether NaN or infinities of a step's tensor, recorded at `scale`, say that the forward pass is
/// broken: of a weight, an activation, or a loss. An infinite loss that a scale multiplied may be
/// the scale's doing.
inline bool breaks_forward(log::Role role, double scale, const Interval& nan, const Interval& inf) {
  const bool loss = role == log::Role::loss;
  return (is_forward(role) || loss) && (nan.low != 0 || (inf.low != 0 && !(loss && scale != 1.0)));
}

inline bool nonfinite(const StepFindings& step) {
  return step.counts.nan.low != 0 || step.counts.inf.low != 0;
}

}  // namespace halfscope::analyzers::underflow
