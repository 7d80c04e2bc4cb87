// SPDX-License-Identifier: Apache-2.0
// What sums in few bits lose, as JSON. Fields: docs/json.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analyzers/reduction/reductions.hpp"

namespace halfscope::reports::exports {

/// `reduce --json`: an object for each sum, format and order.
nlohmann::ordered_json reductions_json(const std::vector<analyzers::reduction::Reduction>& found);

}  // namespace halfscope::reports::exports
