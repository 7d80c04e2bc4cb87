// SPDX-License-Identifier: Apache-2.0
// The exact gradients of a step, for comparison.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/autograd/tape.hpp"
#include "sim/training/trainer.hpp"
#include "sim/training/true_error.hpp"

namespace halfscope::sim::training {

/// Computes a step's passes again on the reference backend, from the weights that the optimizer
/// updates (the master weights if the mode has them), with unrounded inputs and scale 1.
class TrueGradients {
 public:
  TrueGradients(const Settings& settings, const data::Data& data);

  /// Discards the gradients of an earlier attempt.
  void begin() { seen_.clear(); }
  /// Receives an activation gradient as stored by the run's backend, multiplied by `scale`.
  void see(backend::Backend& backend, const std::string& name, const backend::Tensor& gradient,
           double scale);

  /// Compares the run's gradients with the true ones. Must be called before the update. `scales`
  /// are the scales of the trained parameters' gradients.
  StepError compare(backend::Backend& backend, autograd::Parameters& run,
                    std::span<const double> scales, std::int64_t first_batch);

 private:
  struct Seen {
    std::string name;
    Dtype dtype;
    std::vector<float> values;
    double scale;
  };
  class Comparison;

  void take_weights(backend::Backend& backend, autograd::Parameters& run, const data::Batch& batch);

  const Settings& settings_;
  const data::Data& data_;
  std::unique_ptr<backend::Backend> reference_;
  autograd::Parameters parameters_;
  std::vector<Seen> seen_;  ///< in the order of the calls, as in the reference backend
};

}  // namespace halfscope::sim::training
