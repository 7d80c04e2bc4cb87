// SPDX-License-Identifier: Apache-2.0
// What of a log with very many tensors a page holds: the worst of them. Sums are over all.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "analyzers/study.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/table.hpp"
#include "reports/export/json.hpp"

namespace halfscope::reports::page {

/// Most tensors in a page's data. A page of this many is two to three megabytes.
inline constexpr std::size_t kMostTensors = answer::kMostRows;

/// All tensors, or the worst of them, in the order of the analysis.
answer::Tensors kept_tensors(const analyzers::underflow::Analysis& analysis);

/// The same of the JSON that a page holds.
exports::Part kept_part(const analyzers::Findings& found);

/// `recommend --json` with at most kMostTensors entries a list, of `headroom` those with the least;
/// FIELD_left_out: how many are not there.
nlohmann::ordered_json kept_recommendation(const analyzers::Study& study);

/// " (1,000 of 100,000 tensors)"; empty where a page holds all.
std::string kept_text(const analyzers::underflow::Analysis& analysis);

/// A note below a table that `left_out` rows are not in it, and which command writes all: its part
/// after "halfscope". Empty where none is left out.
std::string left_out_note(std::size_t left_out, std::string_view command);

}  // namespace halfscope::reports::page
