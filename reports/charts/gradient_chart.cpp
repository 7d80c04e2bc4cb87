// SPDX-License-Identifier: Apache-2.0
// The picture at the top of a page: all gradients by magnitude, and what of them is lost without a
// loss scale and at the recommended one.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/charts/binades.hpp"
#include "reports/charts/charts.hpp"
#include "reports/charts/limits.hpp"
#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts {

using json = nlohmann::ordered_json;
using namespace vega;

namespace {

/// How faint a bar is that the recommended scale keeps, and a region in which values are lost.
constexpr double kSaved = 0.5, kRegion = 0.09;

/// An expression for what becomes of a binade. By its middle: for a scale that is no power of two
/// a limit lies within a binade.
std::string class_at(const Limits& limits) {
  return fmt::format(
      "datum.e + 0.5 < {} ? 'zero' : datum.e + 0.5 < {} ? 'subnormal' : datum.e + 0.5 < {} ? "
      "'normal' : 'overflow'",
      limits.zero.position, limits.subnormal.position, limits.overflow.position);
}

/// `now` and `then`: classes at the scale of the findings and at the recommended one; `fate`: what
/// a bar is coloured by; `saved`: lost now alone.
json fates(const Window& window) {
  const std::vector<Scale> scales = scales_of(window);
  json out = binade_fields();
  out.push_back(calculate(class_at(limits_of(window.target, scales.front().scale)), "now"));
  out.push_back(calculate(class_at(limits_of(window.target, scales.back().scale)), "then"));
  for (const char* at : {"now", "then"}) {
    out.push_back(calculate(fmt::format("datum.{0} == 'zero' || datum.{0} == 'overflow'", at),
                            fmt::format("lost_{}", at)));
  }
  out.push_back(calculate("datum.lost_now && !datum.lost_then", "saved"));
  out.push_back(
      calculate("datum.lost_then ? datum.then : datum.lost_now ? datum.now : 'kept'", "fate"));
  return out;
}

/// Behind the bars: where values are lost at a scale. Regions of two scales add up.
json regions(const Window& window, const Scale& scale) {
  const Limits limits = limits_of(window.target, scale.scale);
  const json rows = json::array(
      {{{"from", window.first_exponent}, {"to", limits.zero.position}, {"class", "zero"}},
       {{"from", limits.overflow.position}, {"to", window.last_exponent}, {"class", "overflow"}}});
  return layer(rows, {{"type", "rect"}, {"opacity", kRegion}, {"clip", true}},
               {{"x", magnitude(window, "from")},
                {"x2", {{"field", "to"}}},
                {"y", {{"value", 0}}},
                {"y2", {{"value", "height"}}},
                {"color", class_colour("class", nullptr)}});
}

json hover_of(const std::vector<Scale>& scales) {
  json out = tooltip({{"magnitude", "magnitude"}, {"values", "values"}});
  const auto add = [&](const char* field, const Scale& scale) {
    out.push_back(
        {{"field", field}, {"type", "nominal"}, {"title", "at " + short_name(scale.scale)}});
  };
  add("now", scales.front());
  if (scales.size() > 1) add("then", scales.back());
  return out;
}

}  // namespace

json gradient_histogram(const Window& window, Axis counts) {
  const std::vector<Scale> scales = scales_of(window);
  const double foot = counts == Axis::linear ? 0.0 : kCountFloor;
  json low = count_axis(counts), high = low;
  low["field"] = "sure";
  high["field"] = "high";
  const json x = magnitude(window, "e"), end = {{"field", "end"}};
  const json colour = class_colour("fate", nullptr), hover = hover_of(scales);
  const json faint = {{"condition", {{"test", "datum.saved"}, {"value", kSaved}}}, {"value", 1}};
  json out = chart("bars", "Gradients by magnitude, one bar a power of two", 250);
  out["transform"] = fates(window);
  out["transform"].push_back(calculate(fmt::format("max(datum.low, {})", foot), "sure"));
  json& layers = out["layer"] = json::array();
  for (const Scale& scale : scales) layers.push_back(regions(window, scale));
  layers.push_back(
      layer({{"type", "rect"}, {"style", "count"}, {"clip", true}}, {{"x", x},
                                                                     {"x2", end},
                                                                     {"y", low},
                                                                     {"y2", {{"datum", foot}}},
                                                                     {"color", colour},
                                                                     {"fillOpacity", faint},
                                                                     {"tooltip", hover}}));
  layers.push_back(layer({{"type", "rect"}, {"style", "uncertain"}, {"clip", true}},
                         {{"x", x},
                          {"x2", end},
                          {"y", high},
                          {"y2", {{"field", "sure"}}},
                          {"color", colour},
                          {"strokeWidth", where_uncertain(1, 0)},
                          {"tooltip", hover}}));
  for (const Scale& scale : scales) add_limits(window, scale, scales.size() == 1, layers);
  return out;
}

}  // namespace halfscope::reports::charts
