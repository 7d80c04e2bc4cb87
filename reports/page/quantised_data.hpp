// SPDX-License-Identifier: Apache-2.0
// Heat maps by layer and step of the values that FP8 turned to zero.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

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

}  // namespace halfscope::reports::page
