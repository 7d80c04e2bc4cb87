// SPDX-License-Identifier: Apache-2.0
#include "reports/page/own_chart.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace halfscope::reports::page {

using json = nlohmann::ordered_json;

json own_chart(json fields) { return own_chart(std::move(fields), json::object()); }

json own_chart(json fields, json parameters) {
  return {{"fields", std::move(fields)},
          {"parameters", std::move(parameters)},
          {"rows", json::object()}};
}

}  // namespace halfscope::reports::page
