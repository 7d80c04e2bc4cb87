// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/compare_charts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts {

using json = nlohmann::ordered_json;

namespace {

/// A layer a run, in its style.
json run_layers(const char* interpolate, const json& encoding) {
  json layers = json::array();
  for (const auto& [run, style] : {std::pair("A", "now"), {"B", "advised"}}) {
    json layer = vega::layer(
        {{"type", "line"}, {"style", style}, {"interpolate", interpolate}, {"clip", true}},
        encoding);
    layer["transform"] = json::array({{{"filter", fmt::format("datum.run == '{}'", run)}}});
    layer["name"] = fmt::format("run{}", run);  // the page leaves out a run without values
    layers.push_back(layer);
  }
  return layers;
}

/// Points that tell their numbers when pointed at.
json hover_layer(const json& encoding, const json& tooltip) {
  json out = vega::layer({{"type", "point"}, {"opacity", 0}, {"size", 80}}, encoding);
  out["encoding"]["tooltip"] = tooltip;
  return out;
}

}  // namespace

json loss_chart() {
  json out = vega::chart("loss", "Loss of both runs by step", 220);
  const json encoding = {
      {"x", {{"field", "step"}, {"type", "quantitative"}, {"axis", {{"title", "step"}}}}},
      {"y",
       {{"field", "loss"},
        {"type", "quantitative"},
        {"scale", {{"zero", false}}},
        {"axis", {{"title", "loss"}, {"tickCount", 5}}}}}};
  out["layer"] = run_layers("linear", encoding);
  out["layer"].push_back(
      hover_layer(encoding, vega::tooltip({{"run", "run"}, {"step", "step"}, {"loss", "loss"}})));
  return out;
}

json scale_chart() {
  json out = vega::chart("scales", "Loss scale of both runs by step", 200);
  out["transform"] = json::array(
      {vega::calculate("datum.skipped ? 'skipped' : 'applied'", "happened"),
       vega::calculate("format(datum.scale, ',.7~r') + ' (2^' + format(datum.log2, '.4~r') + ')'",
                       "described")});
  json axis = vega::exponent_axis("loss scale");
  axis["tickCount"] = 6;
  const json encoding = {
      {"x", {{"field", "step"}, {"type", "quantitative"}, {"axis", {{"title", "step"}}}}},
      {"y",
       {{"field", "log2"},
        {"type", "quantitative"},
        {"scale", {{"zero", false}, {"nice", true}}},
        {"axis", axis}}}};
  out["layer"] = run_layers("step-after", encoding);
  for (const auto& [run, style] : {std::pair("A", "now"), {"B", "advised"}}) {
    json marks = vega::layer({{"type", "point"},
                              {"style", style},
                              {"shape", "triangle-down"},
                              {"filled", true},
                              {"opacity", 1},
                              {"strokeDash", {1, 0}},
                              {"size", 70}},
                             encoding);
    marks["transform"] =
        json::array({{{"filter", fmt::format("datum.run == '{}' && datum.skipped", run)}}});
    marks["name"] = fmt::format("skipped{}", run);  // left out where there are none
    out["layer"].push_back(marks);
  }
  out["layer"].push_back(hover_layer(encoding, vega::tooltip({{"run", "run"},
                                                              {"step", "step"},
                                                              {"described", "loss scale"},
                                                              {"happened", "step is"}})));
  return out;
}

json binade_chart() {
  json out = vega::chart("binades", "Magnitudes of one tensor in both runs", 260);
  out["transform"] = json::array(
      {vega::calculate("'2^' + datum.e + ' to 2^' + (datum.e + 1)", "magnitude"),
       vega::calculate(
           "format(datum.values, ',') + ' (' + format(100 * datum.share, '.3~r') + ' %)'",
           "described")});
  json axis = vega::exponent_axis("magnitude, unscaled");
  axis["tickCount"] = 12;
  const json encoding = {
      {"x",
       {{"field", "e"},
        {"type", "quantitative"},
        {"scale", {{"nice", false}, {"zero", false}}},
        {"axis", axis}}},
      {"y",
       {{"field", "share"},
        {"type", "quantitative"},
        {"axis", {{"title", "share of values"}, {"format", "~%"}, {"tickCount", 5}}}}}};
  out["layer"] = run_layers("step-after", encoding);
  out["layer"].push_back(hover_layer(
      encoding,
      vega::tooltip({{"run", "run"}, {"magnitude", "magnitude"}, {"described", "values"}})));
  return out;
}

}  // namespace halfscope::reports::charts
