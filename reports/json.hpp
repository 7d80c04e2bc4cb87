// SPDX-License-Identifier: Apache-2.0
// Findings as JSON. Fields: docs/json.md; schemas: docs/schema/.
#pragma once

#include <nlohmann/json.hpp>

#include "analyzers/recommend.hpp"
#include "analyzers/underflow.hpp"

namespace halfscope::reports {

/// Version of the JSON's fields.
inline constexpr int kJsonSchema = 1;

/// An integer, or [low, high] where only bounds are known.
nlohmann::ordered_json to_json(const Interval& count);

nlohmann::ordered_json to_json(const analyzers::Analysis& analysis);
nlohmann::ordered_json to_json(const analyzers::Recommendation& advice);

}  // namespace halfscope::reports
