// SPDX-License-Identifier: Apache-2.0
// A chart that draws rows of its own, without rows yet.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace halfscope::reports::page {

/// {fields: names of a row's values, parameters: of its specification, rows: empty}
nlohmann::ordered_json own_chart(nlohmann::ordered_json fields);
nlohmann::ordered_json own_chart(nlohmann::ordered_json fields, nlohmann::ordered_json parameters);

}  // namespace halfscope::reports::page
