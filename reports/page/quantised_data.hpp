// SPDX-License-Identifier: Apache-2.0
// The heat maps of layers and steps: what FP8 turned to zero.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// A kind of tensor that some log has shares of.
struct QuantisedMap {
  std::string key;      ///< of its rows
  std::string tensors;  ///< answer::map_title()
  double most = 0;      ///< the largest share
  bool judged = false;

  /// Whether there is something to see: some share is at the least of the limits.
  bool drawn() const { return most >= analyzers::formats::kUnderflowLimits.front(); }
};
/// What counts first, then by what they lose.
std::vector<QuantisedMap> quantised_maps(const analyzers::Findings& found);

/// Adds "fp8", their chart, to own_charts_json().
void put_quantised_chart(const analyzers::Findings& found, nlohmann::ordered_json& to);

}  // namespace halfscope::reports::page
