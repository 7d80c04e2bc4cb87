// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/training/trainer.hpp"

namespace halfscope::cli::terminal {

/// What `halfscope simulate --list` prints.
std::string networks_text();

/// What a run prints at its end: the answer, what its own log tells of lost values, and the command
/// to type next. Reads the log.
std::string simulation_text(const sim::training::Settings& settings,
                            const sim::training::RunSummary& summary);

}  // namespace halfscope::cli::terminal
