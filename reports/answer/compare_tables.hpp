// SPDX-License-Identifier: Apache-2.0
// The tables of a comparison (comparison.hpp).
#pragma once

#include "analyzers/compare/compare.hpp"
#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// Both runs side by side, over the tensors and steps that both have. A row's parts are details of
/// the same thing.
Table facts_table(const analyzers::compare::Comparison& comparison);

/// A row a tensor.
Table tensors_table(const analyzers::compare::Comparison& comparison);

}  // namespace halfscope::reports::answer
