// SPDX-License-Identifier: Apache-2.0
// The texts about a simulated run, as data. They contain marks (reports/answer/text.hpp).
#pragma once

#include <string>
#include <vector>

#include "reports/answer/section.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::cli::simulate {

struct Simulation {
  std::vector<std::string> first;                  ///< settings and result of the run
  std::vector<reports::answer::Section> sections;  ///< losses in its values
  std::string next;                                ///< suggested next command
};

/// Reads the run's log and returns its texts.
Simulation simulation_of(const sim::training::Settings& settings,
                         const sim::training::RunSummary& summary);

/// Returns tables of the networks and of the data sets.
std::vector<reports::answer::Table> choices();

}  // namespace halfscope::cli::simulate
