// SPDX-License-Identifier: Apache-2.0
// What a run writes of its steps into its run log: docs/run-log.md.
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

/// Largest magnitudes of a microbatch's gradients, which carry the scale.
struct Microbatch {
  double activation_grad = 0;
  std::optional<double> weight_grad;  ///< of several ranks; else only the sum is computed
};

/// The gradients of one pass over a step's microbatches, unscaled: infinity and NaN are themselves.
struct AttemptFacts {
  double loss = 0;
  double loss_scale = 1;
  bool nonfinite = false;
  double weight_grad = 0, activation_grad = 0;  ///< largest magnitudes
  std::vector<Microbatch> microbatches;         ///< rank after rank
};

class Recorder {
 public:
  /// The writer outlives the recorder. from_step: the first one that this recorder will see.
  Recorder(const Settings& settings, backend::Backend& backend, log::RunLogWriter& writer,
           const std::filesystem::path& folder, std::int64_t from_step);

  /// Forgets what an earlier attempt of the step was.
  void begin_attempt(std::int64_t step);
  /// Whether updates of this step are wanted.
  bool wanted() const { return tables_ || whole_; }
  /// Whether its gradients are to be compared with the true ones.
  bool wants_truth() const { return tables_ && truth_; }

  /// A tensor of the passes, no parameter's. scale: that gradients carry.
  void see(log::Role role, const std::string& name, const backend::Tensor& tensor, double scale);
  /// The gradients of one pass, before they are added up.
  void see_local(const std::vector<autograd::Parameter*>& parameters, double scale);
  /// Before and after the optimizer's step.
  void see_weights(const std::vector<autograd::Parameter*>& parameters,
                   const std::vector<double>& scales);
  void see_truth(const StepError& error) { truth_->write(error); }
  void see_updates(const std::vector<autograd::Parameter*>& parameters,
                   const std::vector<backend::Tensor>& deltas);

  /// Writes the step: tables, samples, and last its scalars. `microbatches` of the last attempt, of
  /// this rank.
  void finish(const std::vector<AttemptFacts>& attempts, std::span<const Microbatch> microbatches,
              bool skipped);
  void held_out(std::int64_t step, double accuracy);

 private:
  void count_seen();

  const Settings& settings_;
  log::RunLogWriter& writer_;
  StepTables step_tables_;
  std::vector<TensorToCount> seen_;  ///< of the passes; counted some at a time
  std::optional<TrueErrorFile> truth_;
  std::int64_t step_ = 0;
  bool tables_ = false, whole_ = false, scaled_, by_layer_;
};

}  // namespace halfscope::sim::training
