// SPDX-License-Identifier: Apache-2.0
// Loss scale and skipped steps of a log. HTML.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// The section; empty where no log tells a scale or skipped steps.
std::string timeline_html(const analyzers::Findings& found);

/// Adds "timeline", the chart of it, to own_charts_json().
void put_timeline_chart(const analyzers::Findings& found, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
