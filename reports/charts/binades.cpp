// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/binades.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace halfscope::reports::charts::vega {

using json = nlohmann::ordered_json;

namespace {

// A strip for each scale above the plot, with its limits written beside it (pixels above the plot).
struct Strip {
  int label, top, bottom;
};
constexpr Strip kNowStrip = {-60, -52, -37};
constexpr Strip kAloneStrip = {-28, -18, -3};
constexpr Strip kAdvisedStrip = {-9, -33, -18};

/// Bands of one strip: what binary16 makes of each magnitude at this scale.
json bands(const Window& window, const Limits& limits) {
  const double edges[] = {static_cast<double>(window.first_exponent), limits.zero.position,
                          limits.subnormal.position, limits.overflow.position,
                          static_cast<double>(window.last_exponent)};
  const std::pair<const char*, std::string> classes[] = {
      {"zero", "at and below " + limits.zero.label},
      {"subnormal", "up to " + limits.subnormal.label},
      {"normal", "below " + limits.overflow.label},
      {"overflow", limits.overflow.label + " and above"}};
  json out = json::array();
  for (int i = 0; i < 4; ++i) {
    out.push_back({{"from", edges[i]},
                   {"to", edges[i + 1]},
                   {"middle", (edges[i] + edges[i + 1]) / 2},
                   {"class", classes[i].first},
                   {"where", classes[i].second},
                   {"share", (edges[i + 1] - edges[i]) / (edges[4] - edges[0])}});
  }
  return out;
}

}  // namespace

json binade_fields() {
  return json::array(
      {calculate("datum.e + 1", "end"),
       calculate("'2^' + datum.e + ' to 2^' + (datum.e + 1)", "magnitude"),
       calculate(described({"datum.low", "datum.low / datum.of"},
                           {"datum.high", "datum.high / max(datum.high, datum.of_low)"}),
                 "values")});
}

json where_uncertain(double uncertain, double sure) {
  return {{"condition", {{"test", "datum.low < datum.high"}, {"value", uncertain}}},
          {"value", sure}};
}

json magnitude(const Window& window, const std::string& field) {
  json axis = exponent_axis("magnitude, unscaled");
  axis["tickCount"] = 10;
  return {{"field", field},
          {"type", "quantitative"},
          {"axis", axis},
          {"scale",
           {{"domain", {window.first_exponent, window.last_exponent}},
            {"nice", false},
            {"zero", false}}}};
}

json positions(const Limits& limits) {
  json out = json::array();
  for (const Limit* limit : {&limits.zero, &limits.subnormal, &limits.overflow}) {
    out.push_back({{"at", limit->position}, {"label", limit->label}});
  }
  return out;
}

void add_limits(const Window& window, const Scale& scale, bool alone, json& layers) {
  const Limits limits = limits_of(window.target, scale.scale);
  const std::string& style = scale.style;
  const Strip strip = scale.advised() ? kAdvisedStrip : alone ? kAloneStrip : kNowStrip;
  const int middle = (strip.top + strip.bottom) / 2;
  const json x = magnitude(window, "from"), at = magnitude(window, "at");
  layers.push_back(layer(positions(limits), {{"type", "rule"}, {"style", style}}, {{"x", at}}));
  layers.push_back(layer(bands(window, limits), {{"type", "rect"}, {"style", "strip"}},
                         {{"x", x},
                          {"x2", {{"field", "to"}}},
                          {"y", {{"value", strip.top}}},
                          {"y2", {{"value", strip.bottom}}},
                          {"color", class_colour("class", nullptr)},
                          {"tooltip", tooltip({{"class", "becomes"}, {"where", "magnitudes"}})}}));
  layers.push_back(
      layer(bands(window, limits), {{"type", "text"}, {"style", "strip-name"}},
            {{"x", magnitude(window, "middle")},
             {"y", {{"value", middle}}},
             {"text",
              {{"condition",
                {{"test", "datum.share * width > 6 * length(datum.class)"}, {"field", "class"}}},
               {"value", ""}}}}));
  layers.push_back(
      layer(positions(limits), {{"type", "text"}, {"style", style + "-label"}},
            {{"x", at}, {"y", {{"value", strip.label}}}, {"text", {{"field", "label"}}}}));
  layers.push_back(
      layer(json::array({{{"name", short_name(scale.scale)}}}),
            {{"type", "text"}, {"style", style + "-name"}, {"align", "right"}},
            {{"x", {{"value", -6}}}, {"y", {{"value", middle}}}, {"text", {{"field", "name"}}}}));
}

}  // namespace halfscope::reports::charts::vega
