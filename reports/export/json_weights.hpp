// SPDX-License-Identifier: Apache-2.0
// Weights that move, and Adam's moments in few bits, as JSON (docs/json.md).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/weights/claims.hpp"
#include "analyzers/weights/forecast.hpp"
#include "analyzers/weights/moments.hpp"
#include "analyzers/weights/moved.hpp"

namespace halfscope::reports::exports {

nlohmann::ordered_json to_json(const analyzers::weights::Movement& found);
nlohmann::ordered_json to_json(const analyzers::weights::Forecast& found);
nlohmann::ordered_json to_json(const analyzers::weights::MomentReplay& found);
/// Adds `fp32_state`, one object for each log and kind of FP32 tensors; json_updates.cpp.
void put_claims(nlohmann::ordered_json& to, const std::vector<analyzers::weights::Claim>& claims);

}  // namespace halfscope::reports::exports
