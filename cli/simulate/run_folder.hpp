// SPDX-License-Identifier: Apache-2.0
// Room for a run in a folder.
#pragma once

#include <string>

#include "sim/training/trainer.hpp"

namespace halfscope::cli::simulate {

/// Refuses a folder that holds something else; deletes the run that it holds if `force`, where
/// these settings can be trained. Throws log::BadInput or options::BadUsage.
void make_room(const std::string& out, bool force, const sim::training::Settings& settings);

}  // namespace halfscope::cli::simulate
