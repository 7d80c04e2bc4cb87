// SPDX-License-Identifier: Apache-2.0
// HTML of the table of tensors, worst first.
#pragma once

#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::page {

/// Returns a row for each of kept_tensors(), in the order of worst_first(). Cells have their exact
/// value in data-v for sorting; data-tensor is the tensor's index, data-kinds its kinds.
std::string worst_table_html(const analyzers::underflow::Analysis& analysis,
                             const analyzers::recommend::Recommendation& advice);

/// Returns <option> elements that filter the rows: gradients (if there are any), all, or a role.
std::string kind_options_html(const analyzers::underflow::Analysis& analysis);

/// Returns the index in kept_tensors() of the worst tensor that a loss scale acts on, or, if there
/// is none, of the worst.
std::size_t worst_tensor(const analyzers::underflow::Analysis& analysis);

/// Returns <option> elements for kept_tensors(), grouped by log and role, in the analysis's order.
std::string tensor_options_html(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::page
