// SPDX-License-Identifier: Apache-2.0
// Input of a loss-scaling policy for a step, and its decision.
#pragma once

#include <cstdint>
#include <string_view>

namespace halfscope::policy {

/// A layer in the backward pass of a step, for policies that scale layer by layer. grad_*: the
/// gradient of the layer's output, times `previous_scale`. *_std: of the population.
struct LayerFacts {
  double grad_mean = 0, grad_std = 0, grad_max_abs = 0;
  double weight_mean = 0, weight_std = 0, weight_max_abs = 0;
  std::uint64_t fan_in = 1;   ///< products summed for one element of the input's gradient
  double previous_scale = 1;  ///< product of the loss scale and the factors of the layers before
  bool has_weight = true;     ///< if false, the weight's numbers are undefined
};

/// The gradients of an attempt: one forward and backward pass at one scale.
struct Attempt {
  /// True if any gradient, in binary16 at the scale, is infinite or NaN: the frameworks' test.
  bool nonfinite = false;
  /// Largest magnitude of the weight gradients, unscaled; infinity or NaN if any is. For a policy
  /// of a single tensor: the largest magnitude of that tensor's gradient.
  double max_abs = 0;
  const LayerFacts* layer = nullptr;  ///< for policies with Needs::layers; null for others
};

enum class Action : std::uint8_t {
  apply,  ///< the weights are updated
  skip,   ///< the step is skipped
  retry   ///< the same step is repeated at the new scale
};

struct Decision {
  Action action = Action::apply;
  /// The message with which the framework ends training at this step; empty if it continues. The
  /// text is valid for the life of the program.
  std::string_view error = {};
};

}  // namespace halfscope::policy
