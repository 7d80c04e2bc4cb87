// SPDX-License-Identifier: Apache-2.0
// What is said of a simulated run, as data. Text has marks (reports/answer/marks.hpp).
#pragma once

#include <string>
#include <vector>

#include "reports/answer/section.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::cli::simulate {

struct Simulation {
  std::vector<std::string> first;                  ///< what ran, and how it ended
  std::vector<reports::answer::Section> sections;  ///< what its values lost
  std::string next;                                ///< the command to type next
};

/// Reads the run's log.
Simulation simulation_of(const sim::training::Settings& settings,
                         const sim::training::RunSummary& summary);

/// The networks, and the data to train them on.
std::vector<reports::answer::Table> choices();

}  // namespace halfscope::cli::simulate
