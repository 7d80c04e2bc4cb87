// SPDX-License-Identifier: Apache-2.0
// What the log of another tool could not tell, for the terminal.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::cli::terminal {

/// The gaps that matter most in a sentence each, the others by name, and the lines that record
/// them; begins with an empty line. Empty where nothing is missing.
std::string gaps_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::cli::terminal
