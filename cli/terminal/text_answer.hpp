// SPDX-License-Identifier: Apache-2.0
// The answer of `halfscope recommend`, for the terminal.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::cli::terminal {

/// The first lines: what no loss scale helps against, then the scale. Never empty.
std::string answer_text(const analyzers::Study& study);

/// Why that scale; empty where there is none. target: the share of zeros allowed.
std::string evidence_text(const analyzers::Study& study, double target);

}  // namespace halfscope::cli::terminal
