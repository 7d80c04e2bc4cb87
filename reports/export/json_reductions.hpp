// SPDX-License-Identifier: Apache-2.0
// Losses of sums in few bits as JSON. The fields are in docs/json.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analyzers/reduction/reductions.hpp"

namespace halfscope::reports::exports {

/// Returns the output of `reduce --json`: one object for each sum, format and order.
nlohmann::ordered_json reductions_json(const std::vector<analyzers::reduction::Reduction>& found);

}  // namespace halfscope::reports::exports
