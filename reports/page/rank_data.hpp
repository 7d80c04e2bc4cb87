// SPDX-License-Identifier: Apache-2.0
// Charts of a run's ranks: a strip by rank, and a map by rank and step.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Returns the roles for which some log has a rank that differs.
std::vector<log::Role> drawn_ranks(const analyzers::Findings& found);

/// Adds "rank-strip" and "rank-map" to own_charts_json(), with rows for each of these roles.
void put_rank_charts(const analyzers::Findings& found, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
