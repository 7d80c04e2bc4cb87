// SPDX-License-Identifier: Apache-2.0
// Data of a chart that has rows of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace halfscope::reports::page {

/// Returns {fields: names of a row's values, parameters: of the specification, rows: empty}.
nlohmann::ordered_json own_chart(nlohmann::ordered_json fields);
nlohmann::ordered_json own_chart(nlohmann::ordered_json fields, nlohmann::ordered_json parameters);

}  // namespace halfscope::reports::page
