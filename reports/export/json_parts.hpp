// SPDX-License-Identifier: Apache-2.0
// Parts of the JSON output, each defined in the file that its comment names. Included by the files
// that write JSON. Each put_ function adds fields to an object.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "analyzers/compare/operations.hpp"
#include "analyzers/overflow/overflow.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/study.hpp"

namespace halfscope::reports::exports {

using Json = nlohmann::ordered_json;

/// Returns a number; null if there is none or it is not finite.
Json number_json(std::optional<double> x);
/// Returns 2^log2; null if there is no value.
Json power_json(std::optional<int> log2);
/// Returns [low, high]; null stands for an unknown bound.
Json pair_json(std::optional<double> low, std::optional<double> high);
/// Returns the array of make(element) for each element of a range.
Json list_json(const auto& range, const auto& make) {
  Json list = Json::array();
  for (const auto& element : range) list.push_back(make(element));
  return list;
}
/// Returns {l1, l2}, each a number or, if only bounds are known, [low, high]; json_recommend.cpp.
Json mass_json(const MassShare& lost);

/// Adds `flushed_to_zero`, `subnormal`, `normal`, `overflow`; json_findings.cpp.
void put_classes(Json& to, const Classes& classes);
/// Adds `total`, `zero`, `nan`, `inf`, `flushed_to_zero`, `subnormal`, `normal`, `overflow`;
/// json_findings.cpp.
void put_counts(Json& to, const analyzers::underflow::Counts& counts);
/// Returns pairs [exponent, count] in ascending order; json_findings.cpp.
Json binades_json(const std::vector<analyzers::underflow::BinadeCount>& binades);

/// Adds `updates`, `swamped` and the other results on a weight's updates; json_updates.cpp.
void put_updates(Json& to, const analyzers::underflow::UpdateFindings& found);

/// Adds `adam_state`, one object for each log with 16-bit optimizer state; json_updates.cpp.
void put_adam(Json& to, const analyzers::Findings& found);
/// Adds factors to move between layers, and bounds of attention scores; json_logs.cpp.
void put_layers(Json& to, const analyzers::Findings& found);

/// Returns a tensor's `headroom`; json_recommend.cpp.
Json headroom_json(const analyzers::overflow::Headroom& headroom);

/// Adds `ranks_compared`, one object per log and role. If `whole` is true, it includes the ranks
/// that do not differ; json_logs.cpp.
void put_ranks(Json& to, const analyzers::Findings& found, bool whole);

/// Adds `fp8` for logs with statistics of quantised tensors. If `whole` is true, it includes the
/// shares of each column of steps; json_quantised.cpp.
void put_quantised(Json& to, const analyzers::Findings& found, bool whole);

/// Adds `notes`, the notes on reading the logs, if there are any; json_logs.cpp.
void put_notes(Json& to, const analyzers::frames::Notes& notes);

/// Adds `notes`, and `could_not_tell` for logs of other tools; json_logs.cpp.
void put_gaps(Json& to, const analyzers::Findings& found);

/// Adds `timeline`, one object for each log of another tool that has loss scales or skipped steps;
/// json_logs.cpp.
void put_timeline(Json& to, const analyzers::Findings& found);

}  // namespace halfscope::reports::exports
