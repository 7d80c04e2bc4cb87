// SPDX-License-Identifier: Apache-2.0
// The state that changes during training, and that a checkpoint stores.
#pragma once

#include <cstdint>

#include "sim/autograd/parameters.hpp"
#include "sim/training/loss_scaling.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::sim::training {

struct Counters {
  std::int64_t step = 0;        ///< number of the next step; the number of steps so far
  std::int64_t applied = 0;     ///< number of optimizer steps
  std::int64_t next_batch = 0;  ///< index of the next batch; with the seed, it determines the data
  std::int64_t skipped = 0, attempts = 0;
  std::int64_t nonfinite = 0;  ///< number of last steps without a finite loss
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
