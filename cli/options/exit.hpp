// SPDX-License-Identifier: Apache-2.0
// Exit codes and usage errors.
#pragma once

#include <stdexcept>

namespace halfscope::cli::options {

/// Exit codes of all subcommands.
enum Exit : int {
  kFine = 0,
  kBadInput = 1,
  kBadUsage = 2,
  kNotHere = 3,         ///< this build or machine lacks the requested backend or part
  kConditionHolds = 4,  ///< a --fail-if condition is true or undecided
  kInterrupted = 130    ///< ended by Ctrl-C: 128 + SIGINT, as shells report it
};

/// An invalid command line. The exit code is kBadUsage.
class BadUsage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace halfscope::cli::options
