// SPDX-License-Identifier: Apache-2.0
// The chart of a log's loss scale and skipped steps.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Returns true if some log has a loss scale.
bool draws_timeline(const analyzers::Findings& found);

/// Adds the chart "timeline" to own_charts_json().
void put_timeline_chart(const analyzers::Findings& found, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
