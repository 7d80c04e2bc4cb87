// SPDX-License-Identifier: Apache-2.0
// One step of training: passes over its microbatches, the policy's decision, the optimizer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/training/recording.hpp"
#include "sim/training/training_state.hpp"
#include "sim/training/true_gradients.hpp"

namespace halfscope::sim::training {

/// Makes all parameters by a pass without training, and the optimizer's state, as zeros.
void make_parameters(const Settings& settings, const data::Data& data, TrainingState& state);

class Stepper {
 public:
  /// A recorder for each rank.
  Stepper(const Settings& settings, const data::Data& data, TrainingState& state,
          std::span<Recorder> recorders)
      : settings_(settings), data_(data), state_(state), recorders_(recorders) {
    if (settings.true_error) truth_.emplace(settings, data);
  }

  /// `error`: the message of a policy that ends training here; then nothing was updated.
  StepResult step(std::string& error);

 private:
  class Pass;
  AttemptFacts attempt();
  void passes(AttemptFacts& facts, double scale);
  void passes_of_ranks(AttemptFacts& facts, double scale);
  double clip_factor() const;
  void update();
  void compare_with_truth(double loss);

  const Settings& settings_;
  const data::Data& data_;
  TrainingState& state_;
  std::span<Recorder> recorders_;
  std::optional<TrueGradients> truth_;
  std::vector<double> scales_;                 ///< that the trained parameters' gradients carry
  std::vector<backend::GradientFacts> found_;  ///< of these gradients
};

}  // namespace halfscope::sim::training
