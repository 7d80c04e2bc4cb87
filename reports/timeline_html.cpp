// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "reports/own_data.hpp"
#include "reports/text.hpp"
#include "reports/timeline_words.hpp"
#include "reports/vega.hpp"

namespace halfscope::reports {

using analyzers::Analysis;
using json = nlohmann::ordered_json;

namespace {

json encoding() {
  json axis = vega::exponent_axis("loss scale");
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
  json out = vega::chart("timeline", "Loss scale of the run by step", 200);
  out["transform"] = json::array(
      {vega::calculate("format(datum.scale, ',.7~r') + ' (2^' + format(datum.log2, '.4~r') + ')'",
                       "described"),
       vega::calculate("datum.skipped ? 'skipped' : 'applied'", "happened")});
  json line = vega::layer(
      {{"type", "line"}, {"style", "now"}, {"interpolate", "step-after"}, {"strokeDash", {1, 0}}},
      encoding());
  json skips = vega::layer({{"type", "point"},
                            {"style", "now"},
                            {"shape", "triangle-down"},
                            {"filled", true},
                            {"opacity", 1},
                            {"strokeDash", {1, 0}},
                            {"size", 70}},
                           encoding());
  skips["transform"] = json::array({{{"filter", "datum.skipped"}}});
  json hover = vega::layer({{"type", "point"}, {"opacity", 0}, {"size", 80}}, encoding());
  hover["encoding"]["tooltip"] = vega::tooltip(
      {{"step", "step"}, {"described", "loss scale"}, {"happened", "what became of it"}});
  out["layer"] = json::array({line, skips, hover});
  return out;
}

/// [step, scale, its log2, skipped]; a step without a scale has the one before.
json rows_of(const Analysis& analysis, const std::string& log) {
  json rows = json::array();
  std::optional<double> scale;
  for (const auto& [of, scalars] : analysis.scalars) {
    if (of != log) continue;
    if (scalars.loss_scale && *scalars.loss_scale > 0) scale = scalars.loss_scale;
    const bool skipped = scalars.found_inf.value_or(false);
    if (!scale || !std::isfinite(*scale) || !(scalars.loss_scale || skipped)) continue;
    rows.push_back({scalars.step, *scale, std::log2(*scale), skipped});
  }
  return rows;
}

}  // namespace

void put_timeline_chart(const Analysis& analysis, json& to) {
  if (analyzers::timeline_facts(analysis).empty()) return;
  to["timeline"] = own_chart("timeline", {"step", "scale", "log2", "skipped"},
                             [](Axis) { return timeline_chart(); });
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    const json rows = rows_of(analysis, analysis.logs[log]);
    if (!rows.empty()) to["timeline"]["rows"][std::to_string(log)]["all"] = rows;
  }
}

std::string timeline_html(const Analysis& analysis) {
  std::string out;
  for (const TimelineWords& words : timeline_words(analysis)) {
    out += fmt::format("<h3>{}</h3>\n<ul>\n", html_escape(words.title));
    for (const std::string& line : words.lines) out += "<li>" + html_escape(line) + "</li>\n";
    out += "</ul>\n";
  }
  if (out.empty()) return "";
  return out +
         "<p class=\"note\">The loss scale; triangles are skipped steps.</p>\n"
         "<figure class=\"chart\" data-chart=\"timeline\"></figure>\n";
}

}  // namespace halfscope::reports
