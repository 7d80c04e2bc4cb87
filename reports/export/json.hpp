// SPDX-License-Identifier: Apache-2.0
// Findings as JSON. The fields are in docs/json.md, the schemas in docs/schema/.
// Replays of loss-scaling policies as JSON. The fields are in docs/json.md.
// Losses of sums in few bits as JSON. The fields are in docs/json.md.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/compare/compare.hpp"
#include "analyzers/reduction/reductions.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/study.hpp"

namespace halfscope::reports::exports {

/// Version of the JSON's fields.
inline constexpr int kJsonSchema = 1;

/// Returns an integer, or [low, high] if only bounds are known.
nlohmann::ordered_json to_json(const Interval& count);

using WriteText = std::function<void(std::string_view)>;
using TakeJson = std::function<void(nlohmann::ordered_json&&)>;

/// Writes the output of `analyze --json` in pieces: a log may have a million tensors.
void write_findings(const analyzers::Findings& found, const WriteText& write);
/// Returns the same as values, for Python's analyze(), but with an empty `tensors`. `tensor` is
/// called with each tensor's JSON, in order.
nlohmann::ordered_json to_json(const analyzers::Findings& found, const TakeJson& tensor);

/// The tensors that a page contains if a log has too many.
struct Part {
  std::vector<const analyzers::underflow::TensorFindings*> tensors;  ///< in the analysis's order
  std::vector<analyzers::underflow::TensorPeaks> peaks;
};
/// Returns the findings with only some tensors. `tensors_left_out` and `peaks_left_out` are the
/// numbers of tensors that are omitted.
nlohmann::ordered_json to_json(const analyzers::Findings& found, const Part& part);
/// Returns the recommendation and its evidence: `recommend --json`, and Python's recommend().
nlohmann::ordered_json to_json(const analyzers::Study& study);
nlohmann::ordered_json to_json(
    const analyzers::compare::Comparison& comparison);  // json_compare.cpp

/// Returns the JSON on one line. Bytes that are not valid UTF-8 are replaced, so that a damaged
/// name is no error.
std::string json_text(const nlohmann::ordered_json& value);

struct TracesOptions {
  bool with_recorded = false;  ///< adds the runs' own scales, if they are known
  std::string framework = {};  ///< --framework as typed; empty: no choice
};

/// Writes the array of `policies --json` in pieces: each policy has one number per step.
void write_traces(const std::vector<analyzers::replay::PolicyStudy>& studies,
                  const TracesOptions& options, const WriteText& write);

/// Calls `take` with each element of the same array, for Python's policies().
void each_trace(const std::vector<analyzers::replay::PolicyStudy>& studies,
                const TracesOptions& options, const TakeJson& take);

/// Returns all policies with their defaults and sources: `policies --list --json`.
nlohmann::ordered_json catalogue_json();

/// Returns the output of `reduce --json`: one object for each sum, format and order.
nlohmann::ordered_json reductions_json(const std::vector<analyzers::reduction::Reduction>& found);

}  // namespace halfscope::reports::exports
