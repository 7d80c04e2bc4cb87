// SPDX-License-Identifier: Apache-2.0
// Weights that move as JSON (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/weights/forecast.hpp"
#include "analyzers/weights/moved.hpp"

namespace halfscope::reports::exports {

nlohmann::ordered_json to_json(const analyzers::weights::Movement& found);
nlohmann::ordered_json to_json(const analyzers::weights::Forecast& found);

}  // namespace halfscope::reports::exports
