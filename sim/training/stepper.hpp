// SPDX-License-Identifier: Apache-2.0
// One training step: passes over its microbatches, the policy's decision, and the optimizer.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/data/batches.hpp"
#include "sim/training/recording.hpp"
#include "sim/training/training_state.hpp"
#include "sim/training/true_gradients.hpp"

namespace halfscope::sim::training {

/// Creates all parameters by a forward pass, and the optimizer's state, filled with zeros.
void make_parameters(const Settings& settings, const data::Data& data, TrainingState& state);

class Stepper {
 public:
  /// `recorders`: one for each rank.
  Stepper(const Settings& settings, const data::Data& data, TrainingState& state,
          std::span<Recorder> recorders)
      : settings_(settings),
        data_(data),
        batches_(data, settings.batch),
        state_(state),
        recorders_(recorders) {
    if (settings.true_error) truth_.emplace(settings, data);
  }

  /// Runs one step. If the policy ends training in this step, `error` receives its message and no
  /// weight is updated.
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
  data::Batches batches_;
  TrainingState& state_;
  std::span<Recorder> recorders_;
  std::optional<TrueGradients> truth_;
  std::vector<double> scales_;                 ///< scales of the trained parameters' gradients
  std::vector<backend::GradientFacts> found_;  ///< facts about the trained parameters' gradients
};

}  // namespace halfscope::sim::training
