// SPDX-License-Identifier: Apache-2.0
// Pieces of the JSON, one file a part; for the files that write JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "analyzers/recommend.hpp"
#include "reports/json.hpp"

namespace halfscope::reports {

using Json = nlohmann::ordered_json;

/// A double, or null when there is none or it is not finite.
Json number_json(std::optional<double> x);
/// 2^log2, or null.
Json power_json(std::optional<int> log2);

/// `per_layer`, `keep_in_fp32`, `footprint`, `snippets`, `dynamic_snippets`; json_cures.cpp.
void put_cures(Json& to, const analyzers::Recommendation& advice);

/// `updates`, `swamped` and what else is known of a weight's updates; json_updates.cpp.
void put_updates(Json& to, const analyzers::UpdateFindings& found);

}  // namespace halfscope::reports
