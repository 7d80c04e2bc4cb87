// SPDX-License-Identifier: Apache-2.0
// The data from which the page's script draws: parameters, and sums over tensors.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// Returns {parameters: scaled|unscaled|gradients -> parameters of the specifications by name,
///  series: log -> gradients|role -> the fields of a tensor in `analyze --json`, and `columns`,
///  scaled: the series a loss scale acts on, facts: a sentence for each of kept_tensors(),
///  first_tensor: the index to show first, csv: data of the CSV that the JSON does not have,
///  own: own_charts_json()}.
nlohmann::ordered_json charts_json(const analyzers::Study& study);

}  // namespace halfscope::reports::page
