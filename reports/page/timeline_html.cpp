// SPDX-License-Identifier: Apache-2.0
#include "reports/page/timeline_html.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

#include "reports/charts/vega.hpp"
#include "reports/page/own_chart.hpp"

namespace halfscope::reports::page {

using analyzers::underflow::Analysis;
using json = nlohmann::ordered_json;

namespace {

json encoding() {
  json axis = charts::vega::exponent_axis("loss scale");
  axis["tickCount"] = 6;
  return {{"x", {{"field", "step"}, {"type", "quantitative"}, {"axis", {{"title", "step"}}}}},
          {"y",
           {{"field", "log2"},
            {"type", "quantitative"},
            {"scale", {{"zero", false}, {"nice", true}}},
            {"axis", axis}}}};
}

/// The scale as steps, skipped steps as triangles.
json timeline_chart() {
  json out = charts::vega::chart("timeline", "Loss scale of the run by step", 200);
  out["transform"] = json::array(
      {charts::vega::calculate(
           "format(datum.scale, ',.7~r') + ' (2^' + format(datum.log2, '.4~r') + ')'", "described"),
       charts::vega::calculate("datum.skipped ? 'skipped' : 'applied'", "happened")});
  json line = charts::vega::layer(
      {{"type", "line"}, {"style", "now"}, {"interpolate", "step-after"}, {"strokeDash", {1, 0}}},
      encoding());
  json skips = charts::vega::layer({{"type", "point"},
                                    {"style", "now"},
                                    {"shape", "triangle-down"},
                                    {"filled", true},
                                    {"opacity", 1},
                                    {"strokeDash", {1, 0}},
                                    {"size", 70}},
                                   encoding());
  skips["transform"] = json::array({{{"filter", "datum.skipped"}}});
  json hover = charts::vega::layer({{"type", "point"}, {"opacity", 0}, {"size", 80}}, encoding());
  hover["encoding"]["tooltip"] = charts::vega::tooltip(
      {{"step", "step"}, {"described", "loss scale"}, {"happened", "what became of it"}});
  out["layer"] = json::array({line, skips, hover});
  return out;
}

/// [step, scale, its log2, skipped], ascending.
using Rows = std::multimap<std::int64_t, json>;

void add_row(Rows& rows, std::int64_t step, std::optional<double> scale, bool skipped) {
  if (!scale || !(*scale > 0) || !std::isfinite(*scale)) return;
  rows.emplace(step, json::array({step, *scale, std::log2(*scale), skipped}));
}

/// A step without a scale has the one before. Of skipped steps that are not told apart, the scales
/// before and after them.
json rows_of(const analyzers::underflow::LogFindings& log) {
  Rows rows;
  std::optional<double> scale;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss_scale && *scalars.loss_scale > 0) scale = scalars.loss_scale;
    const bool skipped = scalars.found_inf.value_or(false);
    if (scalars.loss_scale || skipped) add_row(rows, scalars.step, scale, skipped);
  }
  for (const auto& range : log.skips) {
    add_row(rows, range.first, range.scale_from, false);
    if (range.last) add_row(rows, *range.last + 1, range.scale_to, false);
  }
  json list = json::array();
  for (const auto& [step, row] : rows) list.push_back(row);
  return list;
}

}  // namespace

void put_timeline_chart(const analyzers::Findings& found, json& to) {
  if (found.timelines.empty()) return;
  const Analysis& analysis = found.analysis;
  to["timeline"] = own_chart("timeline", {"step", "scale", "log2", "skipped"},
                             [](charts::Axis) { return timeline_chart(); });
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    const json rows = rows_of(analysis.logs[log]);
    if (!rows.empty()) to["timeline"]["rows"][std::to_string(log)]["all"] = rows;
  }
}

}  // namespace halfscope::reports::page
