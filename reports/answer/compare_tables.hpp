// SPDX-License-Identifier: Apache-2.0
// The tables of a comparison (comparison.hpp).
#pragma once

#include "analyzers/compare/compare.hpp"
#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// Returns both runs side by side, over the tensors and steps that both have. A row with Row::part
/// has details of the row before it.
Table facts_table(const analyzers::compare::Comparison& comparison);

/// Returns one row for each tensor.
Table tensors_table(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::answer
