// SPDX-License-Identifier: Apache-2.0
// Selection of the worst tensors for the page of a log with very many. Sums are over all tensors.
// HTML of the table of tensors, worst first.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/section.hpp"
#include "reports/answer/series.hpp"
#include "reports/export/json.hpp"

namespace halfscope::reports::page {

/// Largest number of tensors in a page's data; such a page has two to three megabytes.
inline constexpr std::size_t kMostTensors = answer::kMostRows;

/// Returns all tensors, or the worst kMostTensors, in the order of the analysis.
answer::Tensors kept_tensors(const analyzers::underflow::Analysis& analysis);

/// Returns the same selection for the JSON in a page.
exports::Part kept_part(const analyzers::Findings& found);

/// Returns `recommend --json` with at most kMostTensors entries per list; for `headroom`, those
/// with the least. FIELD_left_out is the number of omitted entries.
nlohmann::ordered_json kept_recommendation(const analyzers::Study& study);

/// Returns " (worst 1,000 of 100,000 tensors)"; an empty string if the page has all tensors.
std::string kept_text(const analyzers::underflow::Analysis& analysis);

/// Returns the note below a table with `left_out` omitted rows; an empty string for 0. `command` is
/// the command that prints all rows, without "halfscope".
std::string left_out_note(std::size_t left_out, std::string_view command);

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
