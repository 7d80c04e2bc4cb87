// SPDX-License-Identifier: Apache-2.0
// What `halfscope compare` prints.
#pragma once

#include "analyzers/compare/compare.hpp"

namespace halfscope::cli::terminal {

/// The answer, the sums of both runs, and the tensors that changed most, a screenful.
void print_comparison(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::cli::terminal
