// SPDX-License-Identifier: Apache-2.0
// Output of `halfscope compare`.
#pragma once

#include <string>

#include "analyzers/compare/compare.hpp"

namespace halfscope::cli::terminal {

/// Returns the verdict, both runs side by side, and the tensors that changed most.
std::string comparison_text(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::cli::terminal
