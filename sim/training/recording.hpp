// SPDX-License-Identifier: Apache-2.0
// Writes a run's steps into its run log (docs/run-log.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"
#include "sim/autograd/parameters.hpp"
#include "sim/training/step_tables.hpp"
#include "sim/training/trainer.hpp"
#include "sim/training/true_error.hpp"

namespace halfscope::sim::training {

/// Largest magnitudes of a microbatch's gradients, multiplied by the loss scale.
struct Microbatch {
  double activation_grad = 0;
  std::optional<double> weight_grad;  ///< only with several ranks; one rank computes only the sum
};

/// Facts about the gradients of one attempt of a step. Magnitudes are unscaled, maybe not finite.
struct AttemptFacts {
  double loss = 0;
  double loss_scale = 1;
  bool nonfinite = false;
  double weight_grad = 0, activation_grad = 0;  ///< largest magnitudes
  std::vector<Microbatch> microbatches;         ///< in order of ranks
};

class Recorder {
 public:
  /// The writer must outlive the recorder. `from_step` is the recorder's first step.
  Recorder(const Settings& settings, backend::Backend& backend, log::RunLogWriter& writer,
           const std::filesystem::path& folder, std::int64_t from_step);

  /// Starts an attempt of a step, and discards the data of an earlier attempt.
  void begin_attempt(std::int64_t step);
  /// Returns true if the updates of this step are recorded.
  bool wanted() const { return tables_ || whole_; }
  /// Returns true if the gradients of this step are compared with the true ones.
  bool wants_truth() const { return tables_ && truth_; }

  /// Records a tensor of a pass that is not a parameter. `scale` is the scale of gradients.
  void see(log::Role role, const std::string& name, const backend::Tensor& tensor, double scale);
  /// Records the gradients of one pass, before they are summed.
  void see_local(const std::vector<autograd::Parameter*>& parameters, double scale);
  /// see_weights() must be called before the optimizer's step, see_updates() after it.
  void see_weights(const std::vector<autograd::Parameter*>& parameters,
                   const std::vector<double>& scales);
  void see_truth(const StepError& error) { truth_->write(error); }
  void see_updates(const std::vector<autograd::Parameter*>& parameters,
                   const std::vector<backend::Tensor>& deltas);

  /// Writes the step: histograms, samples, and at the end its scalars. `microbatches` belong to the
  /// last attempt and to this rank.
  void finish(const std::vector<AttemptFacts>& attempts, std::span<const Microbatch> microbatches,
              bool skipped);
  void held_out(std::int64_t step, double accuracy);

 private:
  void count_seen();

  const Settings& settings_;
  log::RunLogWriter& writer_;
  StepTables step_tables_;
  std::vector<TensorToCount> seen_;  ///< tensors of the passes that are not counted yet
  std::optional<TrueErrorFile> truth_;
  std::int64_t step_ = 0;
  bool tables_ = false, whole_ = false, scaled_, by_layer_;
};

}  // namespace halfscope::sim::training
