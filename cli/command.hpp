// SPDX-License-Identifier: Apache-2.0
// A subcommand: adds itself to the parser, with what to run.
#pragma once

#include <stdexcept>

#include "cli/parser.hpp"

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

// To add a subcommand: one file, a declaration here, a line in main.cpp.
void add_analyze(Parser& parser);
void add_recommend(Parser& parser);
void add_report(Parser& parser);
void add_compare(Parser& parser);
void add_policies(Parser& parser);
void add_simulate(Parser& parser);
void add_info(Parser& parser);
void add_emulate(Parser& parser);

}  // namespace halfscope::cli
