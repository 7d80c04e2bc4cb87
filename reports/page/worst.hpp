// SPDX-License-Identifier: Apache-2.0
// The table of tensors, worst first. HTML.
#pragma once

#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::page {

/// A row for each of kept_tensors(), in the order of worst_first(); cells carry their exact values
/// in data-v for sorting, rows the tensor's index in data-tensor and what it belongs to in
/// data-kinds.
std::string worst_table_html(const analyzers::underflow::Analysis& analysis,
                             const analyzers::recommend::Recommendation& advice);

/// <option>s to show the rows of some tensors only: gradients where there are any, all, or a role.
std::string kind_options_html(const analyzers::underflow::Analysis& analysis);

/// Index among kept_tensors() of the first to look at: the worst one a loss scale acts on, else the
/// worst.
std::size_t worst_tensor(const analyzers::underflow::Analysis& analysis);

/// <option>s of kept_tensors() in groups by log and role, in the order of the analysis.
std::string tensor_options_html(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::page
