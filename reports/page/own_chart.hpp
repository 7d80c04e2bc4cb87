// SPDX-License-Identifier: Apache-2.0
// A chart that draws rows of its own, without rows yet.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "reports/charts/window.hpp"

namespace halfscope::reports::page {

/// {data: the dataset's name, fields: names of a row's values, specs: linear|log -> Vega-Lite,
/// rows: empty}
nlohmann::ordered_json own_chart(const char* data, nlohmann::ordered_json fields,
                                 const std::function<nlohmann::ordered_json(charts::Axis)>& draw);

}  // namespace halfscope::reports::page
