// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/simulate/simulation.hpp"

namespace halfscope::cli::terminal {

/// Returns the output of `halfscope simulate --list`.
std::string choices_text();

/// Returns the output at the end of a run.
std::string simulation_text(const simulate::Simulation& said);

}  // namespace halfscope::cli::terminal
