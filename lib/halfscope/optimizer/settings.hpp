// SPDX-License-Identifier: Apache-2.0
// The settings of an optimizer, by the names and with the defaults of torch.optim.
#pragma once

#include <cstdint>

namespace halfscope::optimizer {

enum class Algorithm : std::uint8_t { sgd, adam, adamw };

struct Settings {
  Algorithm algorithm = Algorithm::sgd;
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0, dampening = 0;
  bool nesterov = false, maximize = false, amsgrad = false;

  bool is_adam() const { return algorithm != Algorithm::sgd; }
};

}  // namespace halfscope::optimizer
