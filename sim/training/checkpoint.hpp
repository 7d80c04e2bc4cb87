// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a run: RUN/checkpoint/step-NNNNNN.safetensors, the number that of the next step.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/training/training_state.hpp"

namespace halfscope::sim::training {

struct Settings;

/// Writes one, and deletes all but the last two. Throws log::BadInput.
void write_checkpoint(const std::filesystem::path& run, const Settings& settings,
                      TrainingState& state);

/// Sets the state, whose parameters and optimizer state exist already, to the last checkpoint that
/// is whole and of a run with these settings. Why those after it are not taken, a line each. Throws
/// log::BadInput.
std::vector<std::string> read_checkpoint(const std::filesystem::path& run, const Settings& settings,
                                         TrainingState& state);

}  // namespace halfscope::sim::training
