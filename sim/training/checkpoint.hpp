// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run: RUN/checkpoint/step-NNNNNN.safetensors, named after the next step.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/training/training_state.hpp"

namespace halfscope::sim::training {

struct Settings;

/// Writes a checkpoint and deletes all but the last two. Throws log::BadInput.
void write_checkpoint(const std::filesystem::path& run, const Settings& settings,
                      TrainingState& state);

/// Restores the state from the last checkpoint that is undamaged and belongs to a run with these
/// settings. The parameters and optimizer state must exist already. Returns one message for each
/// later checkpoint that cannot be used. Throws log::BadInput if none can be used.
std::vector<std::string> read_checkpoint(const std::filesystem::path& run, const Settings& settings,
                                         TrainingState& state);

}  // namespace halfscope::sim::training
