// SPDX-License-Identifier: Apache-2.0
#include "reports/page/own_chart.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace halfscope::reports::page {

using charts::Axis;

using json = nlohmann::ordered_json;

json own_chart(const char* data, json fields, const std::function<json(Axis)>& draw) {
  return {{"data", data},
          {"fields", std::move(fields)},
          {"specs", {{"linear", draw(Axis::linear)}, {"log", draw(Axis::logarithmic)}}},
          {"rows", json::object()}};
}

}  // namespace halfscope::reports::page
