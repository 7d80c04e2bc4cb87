// SPDX-License-Identifier: Apache-2.0
// A subcommand: adds itself to the app and leaves what to run behind.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>
#include <stdexcept>

namespace halfscope::cli {

/// Exit codes, the same for every subcommand.
enum Exit : int {
  kFine = 0,
  kBadInput = 1,
  kBadUsage = 2,
  kNotHere = 3,         ///< the asked backend or part is not in this program
  kConditionHolds = 4,  ///< a --fail-if condition holds
  kInterrupted = 130    ///< ended by Ctrl-C: what shells give for SIGINT, 128 + 2
};

/// Words on the command line that cannot mean anything. Exit code 2.
class BadUsage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Set by the subcommand that was asked for; returns the exit code.
using Run = std::function<int()>;

// To add a subcommand: one file, a declaration here, a line in main.cpp.
void add_analyze(CLI::App& app, Run& run);
void add_recommend(CLI::App& app, Run& run);
void add_report(CLI::App& app, Run& run);
void add_compare(CLI::App& app, Run& run);
void add_policies(CLI::App& app, Run& run);
void add_simulate(CLI::App& app, Run& run);
void add_info(CLI::App& app, Run& run);
void add_emulate(CLI::App& app, Run& run);

}  // namespace halfscope::cli
