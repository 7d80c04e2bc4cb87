// SPDX-License-Identifier: Apache-2.0
// Training runs: steps, loss scaling, the optimizer, and the recording.
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
  std::string data;  ///< argument of open_data()
  backend::Precision precision = backend::kPrecisions[0];
  backend::Accumulation accumulation = backend::Accumulation::fp32;
  /// No policy: the scale is 1, and an infinite gradient is applied.
  std::optional<policy::Policy> policy;
  backend::UpdateRule rule;
  std::int64_t batch = 32, steps = 1000;
  int accumulation_steps = 1;  ///< number of microbatches of `batch` examples per step
  int ranks = 1;               ///< data-parallel ranks, each with its own microbatches
  double clip = 0;             ///< largest norm of the unscaled gradients; 0 disables clipping
  std::uint64_t seed = 0;
  std::int64_t record_every = 10;  ///< interval of histograms; scalars are recorded at every step
  std::int64_t sample_every = 0;   ///< interval of whole tensors; 0: first and last recorded step
  std::int64_t checkpoint_every = 100;
  bool cudnn = false;  ///< true: on the GPU; false: emulated on the CPU
  /// With cudnn: at steps with histograms, every operation is also emulated from the same inputs.
  bool check_operations = false;
  bool true_error = false;  ///< compare recorded steps' gradients with the reference backend's
  int threads = 0;
};

/// Result of one step.
struct StepResult {
  std::int64_t step = 0;
  double loss = 0;
  double scale = 1;  ///< loss scale of the first attempt
  int attempts = 1;
  bool skipped = false;
};

/// Result of a run.
struct RunSummary {
  std::int64_t steps = 0, skipped = 0, attempts = 0;
  double first_loss = 0, last_loss = 0;
  std::optional<double> accuracy;  ///< on held-out data; nullopt without them or for an early end
  std::string ended;     ///< message why the run ended before the last step; empty if it did not
  bool stopped = false;  ///< true if the callback stopped the run
  std::filesystem::path folder;
};

/// Called after every step. Returns false to stop the run (Ctrl-C).
using StepCallback = std::function<bool(const StepResult&)>;

/// Called with each message for the user before the first step.
using NoteCallback = std::function<void(const std::string&)>;

/// Trains from the beginning and writes a run log into `folder`, which must not contain one. With
/// several ranks, each rank's log is in rank-NNNN. Throws log::BadInput.
RunSummary train(const Settings& settings, const std::filesystem::path& folder,
                 const StepCallback& told = {});

/// Continues from the folder's last usable checkpoint; the results have the same bits as without an
/// interruption. `steps` may be larger than before, all other settings must equal run.json's.
/// `note` receives a message for each unusable checkpoint. Throws log::BadInput.
RunSummary resume(const Settings& settings, const std::filesystem::path& folder,
                  const StepCallback& told = {}, const NoteCallback& note = {});

/// Throws what train() would throw before it writes anything. Writes nothing.
void require_trainable(const Settings& settings);

/// Returns the settings in an existing run's run.json. Throws log::BadInput.
Settings recorded_settings(const std::filesystem::path& folder);

}  // namespace halfscope::sim::training
