// SPDX-License-Identifier: Apache-2.0
// Loss scaling of a run.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "halfscope/policy/policy.hpp"
#include "sim/autograd/tape.hpp"

namespace halfscope::sim::training {

/// Applies one loss-scaling policy. Adaptive loss scaling has one copy of the policy per layer,
/// which acts during the backward pass. Without a policy the scale is 1 and every step is applied.
class LossScaling {
 public:
  /// Throws log::BadInput if the policy does not scale the loss (FP8 policies).
  explicit LossScaling(const std::optional<policy::Policy>& policy);

  bool by_layer() const { return by_layer_; }
  /// The factor by which the loss of the next pass is multiplied.
  double loss_scale() const;

  /// Starts a pass; must be called before each pass.
  void begin_pass();
  /// Returns a layer's factor in this pass and advances the layer's policy. A layer that is used
  /// several times in a pass advances each time.
  double layer(backend::Backend& backend, const std::string& name, const backend::Tensor& gradient,
               const backend::Tensor& weight, double scale);
  /// The scale that is recorded for a step: the loss scale, or, for adaptive loss scaling, the
  /// product of the factors of all layers passed, which is the scale of the input's gradient.
  double used_scale() const { return by_layer_ ? accumulated_ : loss_scale(); }

  policy::Decision advance(bool nonfinite, double max_abs);

  /// Conversion of the state to and from text, exactly. restore() throws std::invalid_argument.
  std::string state() const;
  void restore(const std::string& state);

 private:
  std::optional<policy::Policy> policy_;
  std::map<std::string, policy::Policy> layers_;
  bool by_layer_ = false;
  double accumulated_ = 1;
  std::string_view error_;
};

}  // namespace halfscope::sim::training
