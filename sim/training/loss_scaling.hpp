// SPDX-License-Identifier: Apache-2.0
// The loss-scaling policy of a run at work.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "halfscope/policy/policy.hpp"
#include "sim/autograd/tape.hpp"

namespace halfscope::sim::training {

/// One policy of the loss; of adaptive loss scaling one a layer, which work within the backward
/// pass. Without a policy the scale is 1, and every step is applied.
class LossScaling {
 public:
  /// Throws log::BadInput where the policy is none of a loss.
  explicit LossScaling(const std::optional<policy::Policy>& policy);

  bool by_layer() const { return by_layer_; }
  /// By which the loss of the next pass is multiplied.
  double loss_scale() const;

  /// To be called before a pass; forgets what layers did in the one before.
  void begin_pass();
  /// The factor of a layer in this pass. A layer that is passed several times goes on each time.
  double layer(backend::Backend& backend, const std::string& name, const backend::Tensor& gradient,
               const backend::Tensor& weight, double scale);
  /// The scale a step is said to have had: that of the loss, or with the factors of all layers that
  /// were passed, as the gradient of the input carries it.
  double used_scale() const { return by_layer_ ? accumulated_ : loss_scale(); }

  policy::Decision advance(bool nonfinite, double max_abs);

  /// All numbers of the state, by layer, exactly; and back. restore() throws std::invalid_argument.
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
