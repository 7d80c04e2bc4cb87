// SPDX-License-Identifier: Apache-2.0
// The magnitudes of the gradients as a histogram of few rows, with the limits of the format.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::cli::terminal {

/// Of all gradients; where there are none, of all tensors. At most 80 columns wide, ASCII; empty
/// where no value is finite and nonzero. The limits are those of the analysis' format at its loss
/// scale.
std::string histogram_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::cli::terminal
