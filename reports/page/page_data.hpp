// SPDX-License-Identifier: Apache-2.0
// What the page's script draws with: parameters, and sums that are no tensor's.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// {parameters: scaled|unscaled|gradients -> by name, of the specifications of series;
///  series: log -> gradients|role -> the fields of a tensor in `analyze --json` and `columns`,
///  scaled: the series a loss scale acts on, facts: a sentence a tensor of kept_tensors(),
///  first_tensor: its index, csv: what the CSV has beyond the JSON, own: own_charts_json()}
nlohmann::ordered_json charts_json(const analyzers::Study& study);

}  // namespace halfscope::reports::page
