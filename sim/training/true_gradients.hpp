// SPDX-License-Identifier: Apache-2.0
// The gradients that a step should have had.
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

/// Computes the passes of a step again on the reference backend: from the weights that the
/// optimizer updates (the master weights where the mode has them), inputs unrounded, scale 1.
class TrueGradients {
 public:
  TrueGradients(const Settings& settings, const data::Data& data);

  /// Forgets what an earlier attempt was.
  void begin() { seen_.clear(); }
  /// An activation gradient of the run as it came, of a backend of the run's, carrying `scale`.
  void see(backend::Backend& backend, const std::string& name, const backend::Tensor& gradient,
           double scale);

  /// To be called before the update. scales: that the trained parameters' gradients carry.
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
  std::vector<Seen> seen_;  ///< in the order they came, which is the reference's, too
};

}  // namespace halfscope::sim::training
