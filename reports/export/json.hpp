// SPDX-License-Identifier: Apache-2.0
// Findings as JSON. Fields: docs/json.md; schemas: docs/schema/.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/study.hpp"

namespace halfscope::reports::exports {

/// Version of the JSON's fields.
inline constexpr int kJsonSchema = 1;

/// An integer, or [low, high] where only bounds are known.
nlohmann::ordered_json to_json(const Interval& count);

using WriteText = std::function<void(std::string_view)>;
using TakeJson = std::function<void(nlohmann::ordered_json&&)>;

/// `analyze --json`: handed on piece by piece, a log may have a million tensors.
void write_findings(const analyzers::Findings& found, const WriteText& write);
/// The same as values, Python's analyze(): `tensors` is empty, and they are handed on one by one.
nlohmann::ordered_json to_json(const analyzers::Findings& found, const TakeJson& tensor);

/// Some of what was found, where all would be too much.
struct Part {
  std::vector<const analyzers::underflow::TensorFindings*> tensors;  ///< as the analysis has them
  std::vector<analyzers::underflow::TensorPeaks> peaks;
};
/// The same of a part: `tensors_left_out` and `peaks_left_out` say how many are not there.
nlohmann::ordered_json to_json(const analyzers::Findings& found, const Part& part);
/// The recommendation and its evidence: `recommend --json`, Python's recommend().
nlohmann::ordered_json to_json(const analyzers::Study& study);
nlohmann::ordered_json to_json(
    const analyzers::compare::Comparison& comparison);  // json_compare.cpp

/// On one line. Names that are not UTF-8 do not stop the numbers: damaged bytes are replaced.
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace halfscope::reports::exports
