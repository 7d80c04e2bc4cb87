// SPDX-License-Identifier: Apache-2.0
// An optimizer step's constants as the arithmetic has them: rounded once to the weight's dtype, so
// that Adam's epsilon of 1e-8 is 0 in binary16, and its beta2 of 0.999 is 1 in bfloat16.
#pragma once

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

struct UpdateConstants {
  UpdateRule::Kind kind = UpdateRule::Kind::sgd;
  float unscale = 1;  ///< binary32 whatever the dtype
  float decay = 0, rate = 0, momentum = 0, beta1 = 0, beta2 = 0;
  float rest1 = 0, rest2 = 0;                             ///< 1 - beta
  float adam_rate = 0, root_correction = 1, epsilon = 0;  ///< with the corrections of step t
};

UpdateConstants update_constants(const UpdateRule& rule, Dtype dtype, double unscale);

/// Tensors of state a rule keeps for a weight.
constexpr std::size_t state_count(UpdateRule::Kind kind) {
  return kind == UpdateRule::Kind::sgd ? 0 : kind == UpdateRule::Kind::momentum ? 1 : 2;
}

/// Throws std::invalid_argument where the sizes and dtypes of an update's tensors do not fit.
void require_update(const UpdateRule& rule, const Tensor& gradient, const Tensor& weight,
                    std::span<const Tensor> state, const Tensor& delta);

}  // namespace halfscope::sim::backend
