// SPDX-License-Identifier: Apache-2.0
// Output of `analyze` about tensors: the most serious failures, a summary, a table, and a histogram
// with few rows of the gradients' magnitudes and the limits of the format.
#pragma once

#include <string>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::cli::terminal {

/// Returns about one screen of text. The JSON output is complete.
std::string tensors_text(const analyzers::Findings& found);

}  // namespace halfscope::cli::terminal
