// SPDX-License-Identifier: Apache-2.0
// Charts of the room below overflow, and of the formats that tensors fit.
#include <nlohmann/json.hpp>

#include "reports/charts/charts.hpp"
#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts {

using json = nlohmann::ordered_json;
using namespace vega;

namespace {

constexpr const char* kRoom = "room below overflow, binades";

}  // namespace

json room_bars() {
  json out = bar_chart("rooms", "Headroom below overflow, least first");
  out["transform"] = json::array(
      {calculate("format(datum.room, '.2f') + ' binades at step ' + datum.step", "least"),
       calculate("format(datum.last, '.2f') + ' binades'", "latest"),
       calculate("format(datum.room, '.1f')", "value"),
       calculate("datum.room <= 0 ? 'overflow' : 'normal'", "class")});
  const json y = row_names("name");
  const json x = {{"field", "room"},
                  {"type", "quantitative"},
                  {"axis",
                   {{"title", kRoom},
                    {"tickMinStep", 1},
                    {"tickCount", {{"expr", "ceil(width / 60)"}}},
                    {"labelOverlap", true}}}};
  const json hover =
      tooltip({{"name", "tensor"}, {"least", "least"}, {"latest", "at the last step"}});
  const json bar =
      layer({{"type", "bar"}, {"height", {{"band", 0.62}}}},
            {{"y", y}, {"x", x}, {"color", class_colour("class", nullptr)}, {"tooltip", hover}});
  const json value = layer({{"type", "text"}, {"style", "value"}, {"align", "left"}, {"dx", 4}},
                           {{"y", y}, {"x", x}, {"text", {{"field", "value"}}}});
  out["layer"] = json::array({bar, value});
  return out;
}

json room_lines() {
  json out = chart("trends", "Headroom below overflow over the steps", 340);
  const json x = {{"field", "step"},
                  {"type", "quantitative"},
                  {"axis", {{"title", "step"}, {"tickMinStep", 1}, {"format", "~s"}}},
                  {"scale", {{"nice", false}, {"zero", false}}}};
  const json y = {{"field", "room"},
                  {"type", "quantitative"},
                  {"axis", {{"title", kRoom}}},
                  {"scale", {{"zero", false}}}};
  const json colour = {
      {"field", "name"},
      {"type", "nominal"},
      {"sort", nullptr},
      {"legend", {{"title", nullptr}, {"orient", "bottom"}, {"columns", 2}, {"labelLimit", 320}}}};
  out["transform"] = json::array({calculate("format(datum.room, '.2f') + ' binades'", "text")});
  json edge = layer(json::array({{{"at", 0}}}), {{"type", "rule"}, {"style", "now"}},
                    {{"y", {{"field", "at"}, {"type", "quantitative"}}}});
  out["layer"] = json::array(
      {layer({{"type", "line"}, {"strokeWidth", 1.8}, {"point", {{"size", 22}}}},
             {{"x", x},
              {"y", y},
              {"color", colour},
              {"tooltip", tooltip({{"name", "tensor"}, {"step", "step"}, {"text", "room"}})}}),
       edge});
  return out;
}

json fit_bars() {
  json out = bar_chart("fits", "The narrowest format that serves, by role");
  out["transform"] = json::array(
      {calculate("datum.as_is + datum.scaled", "tensors"),
       calculate("datum.as_is + ' as they are, ' + datum.scaled + ' with a scale of their own'",
                 "text")});
  out["mark"] = {{"type", "bar"}, {"height", {{"band", 0.72}}}};
  out["encoding"] = {
      {"y", row_names("role")},
      {"x",
       {{"field", "tensors"},
        {"type", "quantitative"},
        {"axis", {{"title", "tensors"}, {"tickMinStep", 1}, {"format", "d"}}}}},
      {"order", {{"field", "order"}}},
      {"color",
       {{"field", "format"},
        {"type", "nominal"},
        {"sort", {{"field", "order"}}},
        {"legend", {{"title", nullptr}, {"orient", "bottom"}, {"columns", 4}}}}},
      {"tooltip",
       tooltip({{"role", "role"}, {"format", "narrowest format"}, {"text", "tensors"}})}};
  return out;
}

}  // namespace halfscope::reports::charts
