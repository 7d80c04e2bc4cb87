// SPDX-License-Identifier: Apache-2.0
// Facts that the log of another tool does not contain, for the terminal.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::cli::terminal {

/// Returns the most important gaps as sentences, the names of the others, and the lines of code
/// that record them. Begins with an empty line. Returns an empty string if nothing is missing.
std::string gaps_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::cli::terminal
