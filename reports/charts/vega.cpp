// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/vega.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "halfscope/table/boundary.hpp"

namespace halfscope::reports::charts::vega {

using json = nlohmann::ordered_json;

namespace {

std::string percent(const std::string& share) {
  return fmt::format(
      "({0} == 0 ? '0 %' : {0} >= 1 ? '100 %' : {0} < 0.0001 ? '< 0.01 %' : "
      "{0} > 0.9999 ? '> 99.99 %' : format(100 * {0}, '.3~r') + ' %')",
      share);
}

}  // namespace

json chart(const std::string& data, const std::string& description, int height) {
  return {{"description", description},
          {"width", "container"},
          {"height", height},
          {"autosize", {{"type", "fit"}, {"contains", "padding"}}},
          {"data", {{"name", data}}}};
}

json layer(const json& mark, json encoding) {
  return {{"mark", mark}, {"encoding", std::move(encoding)}};
}

json layer(json values, const json& mark, json encoding) {
  json out = layer(mark, std::move(encoding));
  out["data"] = {{"values", std::move(values)}};
  return out;
}

json calculate(const std::string& expression, const std::string& name) {
  return {{"calculate", expression}, {"as", name}};
}

json tooltip(std::initializer_list<std::pair<const char*, const char*>> field_and_title) {
  json out = json::array();
  for (const auto& [field, title] : field_and_title) {
    out.push_back({{"field", field}, {"type", "nominal"}, {"title", title}});
  }
  return out;
}

std::string described(const Told& low, const Told& high) {
  return fmt::format(
      "{0} == {1} ? format({0}, ',') + ' (' + ({4} == {5} ? {2} : {2} + ' to ' + {3}) + ')' : "
      "format({0}, ',') + ' to ' + format({1}, ',') + ' (' + {2} + ' to ' + {3} + ')'",
      low.count, high.count, percent(low.share), percent(high.share), low.share, high.share);
}

std::string power_of_ten() {
  return "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-9";
}

json exponent_axis(const std::string& title) {
  return {{"title", title},
          {"labelExpr", "'2^' + datum.value"},
          {"tickMinStep", 1},
          {"labelOverlap", true},
          {"labelSeparation", 6}};
}

json count_axis(Axis counts, const char* title) {
  json scale = {{"type", counts == Axis::linear ? "linear" : "log"}, {"nice", false}};
  json axis = {{"title", title},
               {"tickCount", 5},
               {"tickMinStep", 1},
               {"labelExpr", "format(datum.value, '~s')"}};
  if (counts == Axis::logarithmic) {
    scale["domainMin"] = kCountFloor;
    const json decades = {{"condition", {{"test", power_of_ten()}, {"value", 1}}}, {"value", 0}};
    axis["labelExpr"] = power_of_ten() + " ? format(datum.value, '~s') : ''";
    axis["gridOpacity"] = axis["tickOpacity"] = decades;
  }
  return {{"type", "quantitative"}, {"scale", scale}, {"axis", axis}};
}

json bar_chart(const std::string& data, const std::string& description) {
  json out = chart(data, description, 0);
  out["height"] = {{"step", 19}};
  out["autosize"] = {{"type", "fit-x"}, {"contains", "padding"}};
  return out;
}

json row_names(const char* field) {
  return {{"field", field},
          {"type", "nominal"},
          {"sort", nullptr},
          {"axis", {{"title", nullptr}, {"domain", false}, {"ticks", false}, {"labelPadding", 6}}}};
}

json class_colour(const char* field, json legend) {
  return {{"field", field},
          {"type", "nominal"},
          {"scale", {{"domain", {"zero", "subnormal", "normal", "overflow", "kept"}}}},
          {"legend", std::move(legend)}};
}

std::vector<Scale> scales_of(const Window& window) {
  std::vector<Scale> out = {{window.loss_scale, "now"}};
  if (window.recommended && std::exp2(*window.recommended) != window.loss_scale) {
    out.push_back({std::exp2(*window.recommended), "advised"});
  }
  return out;
}

std::string short_name(double scale) {
  const std::optional<int> log2 = exact_log2(scale);
  return log2.value_or(0) == 0 ? fmt::format("scale {}", scale) : fmt::format("scale 2^{}", *log2);
}

}  // namespace halfscope::reports::charts::vega
