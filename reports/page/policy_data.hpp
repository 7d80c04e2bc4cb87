// SPDX-License-Identifier: Apache-2.0
// Rows of the charts of replayed policies.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Adds "policy-scales" and "policy-flushed" to own_charts_json() if policies were replayed.
void put_policy_charts(const analyzers::Study& study, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
