// SPDX-License-Identifier: Apache-2.0
// The data from which the page's script draws: parameters, and sums over tensors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Returns {parameters: scaled|unscaled|gradients -> parameters of the specifications by name,
///  series: log -> gradients|role -> the fields of a tensor in `analyze --json`, and `columns`,
///  scaled: the series a loss scale acts on, facts: a sentence for each of kept_tensors(),
///  first_tensor: the index to show first, csv: data of the CSV that the JSON does not have,
///  own: own_charts_json()}.
nlohmann::ordered_json charts_json(const analyzers::Study& study);

/// Returns an object by chart: {fields: names of a row's values, parameters: of the specification,
/// rows: by log, then by key}. The key is "all", or a tensor's index as text.
nlohmann::ordered_json own_charts_json(const analyzers::Study& study);

/// Returns {fields: names of a row's values, parameters: of the specification, rows: empty}.
nlohmann::ordered_json own_chart(
    nlohmann::ordered_json fields,
    nlohmann::ordered_json parameters = nlohmann::ordered_json::object());

/// Returns true if some log has a loss scale.
bool draws_timeline(const analyzers::Findings& found);

/// A kind of tensor for which some log has shares of flushed values.
struct QuantisedMap {
  std::string key;      ///< key of its rows
  std::string tensors;  ///< title: answer::map_title()
  double most = 0;      ///< largest share
  bool judged = false;

  /// Returns true if some share reaches the lowest limit, so that there is something to see.
  bool drawn() const { return most >= analyzers::formats::kUnderflowLimits.front(); }
};
/// Returns the maps: judged kinds first, then by their largest share.
std::vector<QuantisedMap> quantised_maps(const analyzers::Findings& found);

/// Adds the chart "fp8" to own_charts_json().
void put_quantised_chart(const analyzers::Findings& found, nlohmann::ordered_json& to);

/// Returns the roles for which some log has a rank that differs.
std::vector<log::Role> drawn_ranks(const analyzers::Findings& found);

/// Adds "rank-strip" and "rank-map" to own_charts_json(), with rows for each of these roles.
void put_rank_charts(const analyzers::Findings& found, nlohmann::ordered_json& to);

/// Adds "policy-scales" and "policy-flushed" to own_charts_json() if policies were replayed.
void put_policy_charts(const analyzers::Study& study, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
