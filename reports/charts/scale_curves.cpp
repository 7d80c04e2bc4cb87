// SPDX-License-Identifier: Apache-2.0
// The chart of what every loss scale would do.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "reports/charts/charts.hpp"
#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts {

using json = nlohmann::ordered_json;
using namespace vega;

namespace {

json loss_scale_axis(const std::string& field) {
  json axis = exponent_axis("loss scale");
  axis["tickCount"] = 12;
  return {
      {"field", field},
      {"type", "quantitative"},
      {"axis", axis},
      {"scale",
       {{"domain",
         {analyzers::underflow::kFirstLog2Scale - 0.5, analyzers::underflow::kLastLog2Scale + 0.5}},
        {"nice", false},
        {"zero", false}}}};
}

/// Smallest share a logarithmic axis shows; what is rarer lies under the axis.
constexpr double kSmallestShare = 1e-7;

json share_axis(Axis shares) {
  json scale = {{"domain", {shares == Axis::linear ? 0.0 : kSmallestShare, 1.0}}, {"nice", false}};
  if (shares == Axis::logarithmic) scale["type"] = "log";
  return {{"type", "quantitative"},
          {"scale", scale},
          {"axis",
           {{"title", "share of finite nonzero values"},
            {"tickCount", 5},
            {"labelExpr", "format(100 * datum.value, '~r') + ' %'"}}}};
}

/// Three curves, drawn as bands between the bounds: a line where the count is exact.
json curves(Axis shares) {
  json low = share_axis(shares), high = low;
  low["field"] = "share_low";
  high["field"] = "share_high";
  const std::string floor = fmt::format("{}", kSmallestShare / 10);
  json out = layer({{"type", "area"}, {"style", "curve"}, {"line", true}, {"clip", true}},
                   {{"x", loss_scale_axis("log2_scale")},
                    {"y", high},
                    {"y2", {{"field", "share_low"}}},
                    {"color", class_colour("class", {{"title", nullptr},
                                                     {"orient", "bottom"},
                                                     {"values", {"zero", "subnormal", "overflow"}},
                                                     {"symbolType", "stroke"}})}});
  out["transform"] = json::array(
      {{{"fold", {"flushed_to_zero", "subnormal", "overflow"}}, {"as", {"field", "count"}}},
       calculate("datum.field == 'flushed_to_zero' ? 'zero' : datum.field", "class"),
       calculate("max(" + floor + ", datum.share[datum.field][0])", "share_low"),
       calculate("max(" + floor + ", datum.share[datum.field][1])", "share_high"),
       // Lines at zero would lie on one another: each is drawn where it is more, and to its foot.
       {{"window",
         {{{"op", "lag"}, {"field", "share_high"}, {"as", "before"}},
          {{"op", "lead"}, {"field", "share_high"}, {"as", "after"}}}},
        {"groupby", {"class"}},
        {"sort", {{{"field", "log2_scale"}}}}},
       {{"filter", fmt::format("max(datum.share_high, datum.before, datum.after) > {}", floor)}}});
  return out;
}

/// Invisible bars over the whole height that light up and tell the counts at one scale.
json hover_bars() {
  json out = layer(
      {{"type", "rect"}, {"style", "hover"}},
      {{"x", loss_scale_axis("from")},
       {"x2", {{"field", "to"}}},
       {"y", {{"value", 0}}},
       {"y2", {{"value", "height"}}},
       {"opacity",
        {{"condition", {{"param", "pointed"}, {"empty", false}, {"value", 0.14}}}, {"value", 0}}},
       {"tooltip", tooltip({{"scale", "loss scale"},
                            {"t_flushed_to_zero", "become zero"},
                            {"t_subnormal", "subnormal"},
                            {"t_overflow", "overflow"}})}});
  out["params"] = json::array(
      {{{"name", "pointed"},
        {"select", {{"type", "point"}, {"on", "pointerover"}, {"clear", "pointerout"}}}}});
  json& transform = out["transform"] = json::array(
      {calculate("datum.log2_scale - 0.5", "from"), calculate("datum.log2_scale + 0.5", "to"),
       calculate("datum.log2_scale >= 0 ? format(pow(2, datum.log2_scale), ',') + ' (2^' + "
                 "datum.log2_scale + ')' : '2^' + datum.log2_scale",
                 "scale")});
  for (const char* field : {"flushed_to_zero", "subnormal", "overflow"}) {
    const std::string count = std::string("datum.") + field;
    transform.push_back(calculate("isArray(" + count + ") ? " + count + "[0] : " + count, "a"));
    transform.push_back(calculate("isArray(" + count + ") ? " + count + "[1] : " + count, "b"));
    const std::string share = std::string("datum.share.") + field;
    transform.push_back(calculate(described({"datum.a", share + "[0]"}, {"datum.b", share + "[1]"}),
                                  std::string("t_") + field));
  }
  return out;
}

}  // namespace

json scale_curves(const Window& window, Axis shares) {
  json out = chart("scales", "Share of values lost at every power-of-two loss scale", 230);
  json& layers = out["layer"] = json::array();
  if (window.lowest && window.highest && *window.lowest <= *window.highest) {
    layers.push_back(
        layer(json::array({{{"from", *window.lowest - 0.5}, {"to", *window.highest + 0.5}}}),
              {{"type", "rect"}, {"style", "good"}},
              {{"x", loss_scale_axis("from")}, {"x2", {{"field", "to"}}}}));
  }
  layers.push_back(curves(shares));
  for (const Scale& scale : scales_of(window)) {
    const std::string name =
        (scale.advised() ? std::string(window.recommended_as) + " " : "") + short_name(scale.scale);
    const json mark = json::array({{{"at", std::log2(scale.scale)}, {"label", name}}});
    layers.push_back(
        layer(mark, {{"type", "rule"}, {"style", scale.style}}, {{"x", loss_scale_axis("at")}}));
    layers.push_back(layer(mark, {{"type", "text"}, {"style", scale.style + "-label"}},
                           {{"x", loss_scale_axis("at")},
                            {"y", {{"value", scale.advised() ? -20 : -7}}},
                            {"text", {{"field", "label"}}}}));
  }
  layers.push_back(hover_bars());
  return out;
}

}  // namespace halfscope::reports::charts
