// SPDX-License-Identifier: Apache-2.0
// Findings as JSON. Fields: docs/json.md; schemas: docs/schema/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analyzers/compare/compare.hpp"
#include "analyzers/study.hpp"

namespace halfscope::reports::exports {

/// Version of the JSON's fields.
inline constexpr int kJsonSchema = 1;

/// An integer, or [low, high] where only bounds are known.
nlohmann::ordered_json to_json(const Interval& count);

/// `analyze --json`, Python's analyze().
nlohmann::ordered_json to_json(const analyzers::Findings& found);
/// The recommendation and its evidence: `recommend --json`, Python's recommend(), the download of a
/// page.
nlohmann::ordered_json to_json(const analyzers::Study& study);
nlohmann::ordered_json to_json(
    const analyzers::compare::Comparison& comparison);  // json_compare.cpp

/// On one line. Names that are not UTF-8 do not stop the numbers: damaged bytes are replaced.
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace halfscope::reports::exports
