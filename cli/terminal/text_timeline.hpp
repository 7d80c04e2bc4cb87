// SPDX-License-Identifier: Apache-2.0
// The loss scale's way through another tool's log, for the terminal.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::cli::terminal {

/// Skipped steps, the scale's ends, its falls and what drove them. Empty where no log tells a scale
/// or a skipped step; run logs have `halfscope policies`.
std::string timeline_text(const analyzers::Findings& found);

}  // namespace halfscope::cli::terminal
