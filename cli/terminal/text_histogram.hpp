// SPDX-License-Identifier: Apache-2.0
// Histogram of the gradients' magnitudes with few rows, and the limits of the format.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::cli::terminal {

/// Returns the histogram of all gradients or, if there are none, of all tensors: ASCII, at most 80
/// columns. Returns an empty string if no value is finite and nonzero. The limits belong to the
/// analysis's format at its loss scale.
std::string histogram_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::cli::terminal
