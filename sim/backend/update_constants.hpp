// SPDX-License-Identifier: Apache-2.0
// Constants of an optimizer step, each rounded once to the weight's dtype. For example, Adam's
// epsilon of 1e-8 is 0 in binary16, and its beta2 of 0.999 is 1 in bfloat16.
#pragma once

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

struct UpdateConstants {
  UpdateRule::Kind kind = UpdateRule::Kind::sgd;
  float unscale = 1;  ///< always binary32
  float decay = 0, rate = 0, momentum = 0, beta1 = 0, beta2 = 0;
  float rest1 = 0, rest2 = 0;                             ///< 1 - beta1, 1 - beta2
  float adam_rate = 0, root_correction = 1, epsilon = 0;  ///< with the bias corrections of step t
};

UpdateConstants update_constants(const UpdateRule& rule, Dtype dtype, double unscale);

/// Returns the number of state tensors that a rule keeps for each weight.
constexpr std::size_t state_count(UpdateRule::Kind kind) {
  return kind == UpdateRule::Kind::sgd ? 0 : kind == UpdateRule::Kind::momentum ? 1 : 2;
}

/// Throws std::invalid_argument if the sizes or dtypes of an update's tensors do not match.
void require_update(const UpdateRule& rule, const Tensor& gradient, const Tensor& weight,
                    std::span<const Tensor> state, const Tensor& delta);

}  // namespace halfscope::sim::backend
