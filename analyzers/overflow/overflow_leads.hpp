// SPDX-License-Identifier: Apache-2.0
// Finds the tensors and steps that lead to an overflow.
#pragma once

#include <vector>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/overflow/overflow_runs.hpp"

namespace halfscope::analyzers::overflow {

/// Returns one tensor's state at one step. `overflow` is counted at its loss scale, or at 1.
TensorState glimpse_of(const underflow::TensorFindings& tensor,
                       const underflow::StepFindings& step);

/// Returns the tensor in which a run first appears and those it is computed from, each with its
/// last recorded steps up to the run. Limited to a few tensors and steps.
std::vector<Lead> find_leads(const LogView& view, const Run& run);

}  // namespace halfscope::analyzers::overflow
