// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/simulate/simulation.hpp"

namespace halfscope::cli::terminal {

/// What `halfscope simulate --list` prints.
std::string choices_text();

/// What a run prints at its end.
std::string simulation_text(const simulate::Simulation& said);

}  // namespace halfscope::cli::terminal
