// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run: RUN/checkpoint/step-NNNNNN.safetensors, the number that of the next step.
#pragma once

#include <filesystem>

#include "sim/training_state.hpp"

namespace halfscope::sim {

/// Writes one, and deletes all but the last two. Throws log::BadInput.
void write_checkpoint(const std::filesystem::path& run, UpdateRule::Kind optimizer,
                      TrainingState& state);

/// Sets the state, whose parameters and optimizer state exist already, to the last checkpoint that
/// is whole. Throws log::BadInput.
void read_checkpoint(const std::filesystem::path& run, UpdateRule::Kind optimizer,
                     TrainingState& state);

}  // namespace halfscope::sim
