// SPDX-License-Identifier: Apache-2.0
// What a loss-scaling policy sees of a step, and what it decides.
#pragma once

#include <cstdint>
#include <string_view>

namespace halfscope::policy {

/// One layer in the backward pass of one step, for policies that scale layer by layer. Gradient:
/// that of the layer's output as it arrives, times `previous_scale`. Standard deviations are of the
/// population.
struct LayerFacts {
  double grad_mean = 0, grad_std = 0, grad_max_abs = 0;
  double weight_mean = 0, weight_std = 0, weight_max_abs = 0;
  std::uint64_t fan_in = 1;   ///< products summed for one element of the input's gradient
  double previous_scale = 1;  ///< product of the factors of the layers before, and the loss's
  bool has_weight = true;     ///< else the weight's numbers mean nothing
};

/// What the gradients of one attempt were: one forward and backward pass at one scale.
struct Attempt {
  /// Some gradient, as computed in binary16 at the scale, is infinite or NaN: what frameworks test.
  bool nonfinite = false;
  /// Largest magnitude of the weights' gradients, unscaled; infinity or NaN where one is that. Of a
  /// policy of one tensor, that tensor's.
  double max_abs = 0;
  const LayerFacts* layer = nullptr;  ///< for policies of Needs::layers
};

enum class Action : std::uint8_t {
  apply,  ///< the weights are updated
  skip,   ///< the step is skipped
  retry   ///< the same step is tried again, at the new scale
};

struct Decision {
  Action action = Action::apply;
  /// The framework's message where it ends training here; lives as long as the program.
  std::string_view error = {};
};

}  // namespace halfscope::policy
