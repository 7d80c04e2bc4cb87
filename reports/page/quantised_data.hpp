// SPDX-License-Identifier: Apache-2.0
// The heat maps of layers and steps: what FP8 turned to zero.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Each kind of tensor that some log has shares of: the key of its rows, and answer::map_title().
std::vector<std::pair<std::string, std::string>> quantised_maps(const analyzers::Findings& found);

/// Adds "fp8", their chart, to own_charts_json().
void put_quantised_chart(const analyzers::Findings& found, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
