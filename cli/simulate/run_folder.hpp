// SPDX-License-Identifier: Apache-2.0
// Preparation of the output folder of a run.
#pragma once

#include <string>

#include "sim/training/trainer.hpp"

namespace halfscope::cli::simulate {

/// Ensures that `out` can receive a run. If it has a run and `force` is true, deletes that run,
/// after checking that these settings can be trained. Throws log::BadInput or options::BadUsage if
/// the folder is not usable.
void make_room(const std::string& out, bool force, const sim::training::Settings& settings);

}  // namespace halfscope::cli::simulate
