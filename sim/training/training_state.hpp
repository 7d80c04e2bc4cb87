// SPDX-License-Identifier: Apache-2.0
// All that changes while a network is trained: what a checkpoint holds.
#pragma once

#include <cstdint>

#include "sim/autograd/parameters.hpp"
#include "sim/training/loss_scaling.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::sim::training {

struct Counters {
  std::int64_t step = 0;        ///< the next one's number: steps attempted so far
  std::int64_t applied = 0;     ///< steps of the optimizer
  std::int64_t next_batch = 0;  ///< data is a function of this number and the seed
  std::int64_t skipped = 0, attempts = 0;
  std::int64_t nonfinite = 0;  ///< steps in a row whose loss was not finite
  double first_loss = 0, last_loss = 0;
};

struct TrainingState {
  TrainingState(const Settings& settings, backend::Backend& on)
      : backend(on), parameters(on, settings.precision, settings.seed), scaling(settings.policy) {}

  backend::Backend& backend;
  autograd::Parameters parameters;
  LossScaling scaling;
  Counters counters;
};

}  // namespace halfscope::sim::training
