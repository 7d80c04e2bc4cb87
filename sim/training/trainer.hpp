// SPDX-License-Identifier: Apache-2.0
// A training run: steps, loss scaling, the optimizer, and what is recorded of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "halfscope/policy/policy.hpp"
#include "sim/backend/backend.hpp"
#include "sim/backend/precision.hpp"
#include "sim/data/data.hpp"
#include "sim/networks/network.hpp"

namespace halfscope::sim::training {

struct Settings {
  const networks::Network* network = nullptr;
  std::string data;  ///< as open_data() takes it
  backend::Precision precision = backend::kPrecisions[0];
  backend::Accumulation accumulation = backend::Accumulation::fp32;
  /// None: scale 1, and an infinite gradient is applied as it is.
  std::optional<policy::Policy> policy;
  backend::UpdateRule rule;
  std::int64_t batch = 32, steps = 1000;
  int accumulation_steps = 1;  ///< microbatches of `batch` a step
  int ranks = 1;               ///< of data-parallel training; each has microbatches of its own
  double clip = 0;             ///< largest norm of the unscaled gradients; 0: no clipping
  std::uint64_t seed = 0;
  std::int64_t record_every = 10;  ///< steps with histograms; scalars are of every step
  std::int64_t sample_every = 0;   ///< steps with whole tensors; 0: the first and the last recorded
  std::int64_t checkpoint_every = 100;
  bool cudnn = false;  ///< on the GPU; else emulated on the processor
  /// With cudnn: every operation of steps with histograms is emulated, too, from the same inputs.
  bool check_operations = false;
  bool true_error = false;  ///< compare recorded steps' gradients with the reference backend's
  int threads = 0;
};

/// What one attempted step was.
struct StepResult {
  std::int64_t step = 0;
  double loss = 0;
  double scale = 1;  ///< of the first attempt
  int attempts = 1;
  bool skipped = false;
};

/// What a run was, for its last lines and for tests.
struct RunSummary {
  std::int64_t steps = 0, skipped = 0, attempts = 0;
  double first_loss = 0, last_loss = 0;
  std::optional<double> accuracy;  ///< on held-out data, at the end
  std::string ended;               ///< empty; or why before the last step: a message
  bool stopped = false;            ///< because the callback said so
  /// Gradients over the recorded steps: finite nonzero ones of the values before rounding cannot be
  /// known here; `halfscope analyze` on the log tells what is lost.
  std::filesystem::path folder;
};

/// Told of every step; returns false to stop (Ctrl-C).
using StepCallback = std::function<bool(const StepResult&)>;

/// Told of what is worth a line before the first step.
using NoteCallback = std::function<void(const std::string&)>;

/// Trains from the beginning, writing a run log into `folder`, which must not hold one; with
/// several ranks one into rank-NNNN of each. Throws log::BadInput.
RunSummary train(const Settings& settings, const std::filesystem::path& folder,
                 const StepCallback& told = {});

/// Goes on from the folder's last checkpoint, bit for bit as if it had never stopped; `steps` more
/// than there were are allowed, all other settings must be those of run.json. Notes checkpoints
/// that it cannot go on from. Throws log::BadInput.
RunSummary resume(const Settings& settings, const std::filesystem::path& folder,
                  const StepCallback& told = {}, const NoteCallback& note = {});

/// Throws what train() would throw before it writes anything.
void require_trainable(const Settings& settings);

/// Of a run that is there, as its run.json has them. Throws log::BadInput.
Settings recorded_settings(const std::filesystem::path& folder);

}  // namespace halfscope::sim::training
