// SPDX-License-Identifier: Apache-2.0
// The chart of the loss scale and the skipped steps of a log.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Whether some log has a loss scale to draw.
bool draws_timeline(const analyzers::Findings& found);

/// Adds "timeline", the chart of it, to own_charts_json().
void put_timeline_chart(const analyzers::Findings& found, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
