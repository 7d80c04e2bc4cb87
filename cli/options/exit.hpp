// SPDX-License-Identifier: Apache-2.0
// How a command ends.
#pragma once

#include <stdexcept>

namespace halfscope::cli::options {

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

}  // namespace halfscope::cli::options
