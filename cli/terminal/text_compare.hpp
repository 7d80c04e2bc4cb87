// SPDX-License-Identifier: Apache-2.0
// What `halfscope compare` prints.
#pragma once

#include <string>

#include "analyzers/compare/compare.hpp"

namespace halfscope::cli::terminal {

/// The verdict, both runs side by side, and the tensors that changed most.
std::string comparison_text(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::cli::terminal
