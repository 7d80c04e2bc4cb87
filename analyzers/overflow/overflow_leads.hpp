// SPDX-License-Identifier: Apache-2.0
// The frames that lead to an overflow.
#pragma once

#include <vector>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/overflow/overflow_runs.hpp"

namespace halfscope::analyzers::overflow {

/// Of one tensor at one step; `overflow` is what its kind of tensor would overflow.
Glimpse glimpse_of(const underflow::TensorFindings& tensor, const underflow::StepFindings& step);

/// The tensor where a run first shows, what it is computed from, and their last recorded steps up
/// to it. A few of each.
std::vector<Lead> find_leads(const LogView& view, const Run& run);

}  // namespace halfscope::analyzers::overflow
