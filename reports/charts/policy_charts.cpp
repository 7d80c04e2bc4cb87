// SPDX-License-Identifier: Apache-2.0
// Charts of replayed loss-scaling policies: the scale over the steps, and what is flushed under it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>
#include <utility>

#include "reports/answer/policy_lines.hpp"
#include "reports/charts/charts.hpp"
#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts {

using answer::Happening;

using json = nlohmann::ordered_json;
using namespace vega;

namespace {

json step_axis(const char* field) {
  return {{"field", field},
          {"type", "quantitative"},
          {"axis",
           {{"title", "step"},
            {"tickMinStep", 1},
            {"tickCount", {{"expr", "ceil(width / 90)"}}},
            {"labelOverlap", true},
            {"labelSeparation", 8},
            {"labelExpr",
             "abs(datum.value) < 10000 ? format(datum.value, ',') : format(datum.value, '~s')"}}},
          {"scale", {{"nice", false}, {"zero", false}}}};
}

json line_colour() {
  return {{"field", "name"},
          {"type", "nominal"},
          {"sort", nullptr},
          {"legend",
           {{"title", nullptr},
            {"orient", "bottom"},
            {"symbolType", "stroke"},
            {"symbolStrokeWidth", 3},
            {"symbolOpacity", 1}}}};
}

/// Lines that lie on one another for a while are seen all the same: the first is the widest.
json line_encoding(json x, json y) {
  return {{"x", std::move(x)},
          {"y", std::move(y)},
          {"color", line_colour()},
          {"strokeWidth",
           {{"field", "width"}, {"type", "ordinal"}, {"scale", nullptr}, {"legend", nullptr}}},
          {"strokeDash",
           {{"field", "fixed"},
            {"type", "nominal"},
            {"scale", {{"domain", {0, 1}}, {"range", {{1, 0}, {7, 4}}}}},
            {"legend", nullptr}}}};
}

json width_of_line() { return calculate("datum.fixed ? 2 : 5.5 - 0.8 * datum.order", "width"); }

json only(const char* kind) { return {{"filter", fmt::format("datum.kind == '{}'", kind)}}; }

/// "65,536 (2^16)", exact; of what is no power of two all digits that matter.
json scale_words() {
  return calculate(
      "datum.log2 == round(datum.log2) ? (datum.log2 > 0 && datum.log2 <= 40 ? "
      "format(datum.scale, ',') + ' (2^' + datum.log2 + ')' : datum.log2 == 0 ? '1' : '2^' + "
      "datum.log2) : format(datum.scale, ',.7~r') + ' (2^' + format(datum.log2, '.2f') + ')'",
      "scale_text");
}

json steps_words() {
  return calculate(
      "datum.step == datum.last ? format(datum.step, ',') : format(datum.step, ',') + ' to ' + "
      "format(datum.last, ',')",
      "steps_text");
}

json scale_axis() {
  json axis = exponent_axis("loss scale");
  axis["tickCount"] = 8;
  return {{"field", "log2"},
          {"type", "quantitative"},
          {"axis", axis},
          {"scale", {{"zero", false}, {"nice", true}, {"padding", 8}}}};
}

/// Nothing that is seen: it gives both charts all lines and all steps, so that a policy has its
/// colour and a step its place in either, also where a line has nothing to draw.
json frame() {
  json out = layer({{"type", "point"}, {"size", 0}, {"opacity", 0}},
                   {{"x", step_axis("step")}, {"color", line_colour()}});
  out["transform"] = json::array({only("frame")});
  return out;
}

/// Invisible, wide: what the line holds where it is pointed at.
json scale_hover() {
  json out = layer(
      {{"type", "rule"}, {"strokeWidth", 11}, {"opacity", 0}},
      {{"x", step_axis("step")},
       {"x2", {{"field", "until"}}},
       {"y", scale_axis()},
       {"tooltip",
        tooltip({{"name", "policy"}, {"scale_text", "loss scale"}, {"steps_text", "steps"}})}});
  out["transform"] = json::array({only("scale"), scale_words(), steps_words()});
  return out;
}

/// The symbols of those kinds of marks that occur; others would only fill the legend.
json symbols(const std::set<std::string>& kinds) {
  constexpr std::pair<Happening, const char*> kSymbols[] = {{Happening::overflow, "triangle-down"},
                                                            {Happening::in_model, "cross"},
                                                            {Happening::unknown, "diamond"},
                                                            {Happening::applied, "square"},
                                                            {Happening::retried, "triangle-up"}};
  json domain = json::array(), range = json::array();
  for (const auto& [kind, symbol] : kSymbols) {
    if (!kinds.contains(std::string(answer::name_of(kind)))) continue;
    domain.push_back(answer::name_of(kind));
    range.push_back(symbol);
  }
  json legend = {{"title", nullptr}, {"orient", "bottom"}};
  if (domain.empty()) {  // a scale wants a symbol all the same
    domain.push_back("");
    range.push_back("circle");
    legend = nullptr;
  }
  return {{"field", "what"},
          {"type", "nominal"},
          {"sort", nullptr},
          {"scale", {{"domain", domain}, {"range", range}}},
          {"legend", legend}};
}

json skip_marks(const std::set<std::string>& kinds) {
  json out = layer(
      {{"type", "point"},
       {"filled", true},
       {"opacity", 1},
       {"stroke", "white"},
       {"strokeWidth", 0.7}},
      {{"x", step_axis("step")},
       {"y", scale_axis()},
       {"color", line_colour()},
       {"shape", symbols(kinds)},
       {"size",
        {{"field", "size"}, {"type", "quantitative"}, {"scale", nullptr}, {"legend", nullptr}}},
       {"tooltip", tooltip({{"name", "policy"},
                            {"what", "step"},
                            {"count_text", "how many"},
                            {"steps_text", "steps"},
                            {"scale_text", "at loss scale"}})}});
  out["transform"] =
      json::array({{{"filter", "datum.kind == 'mark' || datum.kind == 'last'"}},
                   scale_words(),
                   steps_words(),
                   calculate("format(datum.count, ',')", "count_text"),
                   // A line without marks leaves one that is not seen, for the colours. Those of
                   // the first line, the run's, lie below all others and show around them.
                   calculate("datum.kind != 'mark' ? 0 : datum.order == 0 ? 190 : 60", "size")});
  return out;
}

/// Where a line ends before the run does.
json line_ends() {
  json out = layer({{"type", "text"},
                    {"align", "left"},
                    {"dx", 5},
                    {"dy", -8},
                    {"fontSize", 11},
                    {"fontWeight", "bold"}},
                   {{"x", step_axis("step")},
                    {"y", scale_axis()},
                    {"color", line_colour()},
                    {"text", {{"field", "end_text"}}}});
  // A layer without rows would be warned of: a line that goes on has an end without words.
  out["transform"] = json::array({{{"filter", "datum.kind == 'end' || datum.kind == 'last'"}},
                                  calculate("datum.kind == 'end' ? datum.what : ''", "end_text")});
  return out;
}

/// Smallest share drawn; bars start here.
constexpr double kSmallestShare = 1e-7;

/// Logarithmic on either axis of the page: policies differ in what is surely flushed, which is
/// often a millionth of what may be.
json flushed_share(const char* field) {
  return {{"field", field},
          {"type", "quantitative"},
          {"scale", {{"type", "log"}, {"domain", {kSmallestShare, 1.2}}, {"nice", false}}},
          {"axis",
           {{"title", "gradients flushed to zero"},
            {"values", {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0}},
            {"labelOverlap", true},
            {"labelExpr", "format(100 * datum.value, '~r') + ' %'"}}}};
}

}  // namespace

json policy_scales(const std::set<std::string>& marks) {
  json out = chart("policy-scales", "Loss scale of each policy over the steps", 320);
  json lines = layer({{"type", "line"}, {"interpolate", "step-after"}},
                     line_encoding(step_axis("step"), scale_axis()));
  lines["transform"] =
      json::array({{{"filter", "datum.kind == 'scale' || datum.kind == 'last'"}}, width_of_line()});
  // Legends below one another: side by side the second leaves a telephone.
  out["config"] = {
      {"legend", {{"layout", {{"bottom", {{"direction", "vertical"}, {"anchor", "start"}}}}}}}};
  out["layer"] = json::array({frame(), lines, line_ends(), scale_hover(), skip_marks(marks)});
  return out;
}

json policy_flushed() {
  json out = bar_chart("policy-flushed", "Share of gradients flushed to zero under each policy");
  const json names = row_names("name");
  const json hover = tooltip(
      {{"name", "policy"}, {"mean_text", "flushed, mean"}, {"worst_text", "flushed, worst step"}});
  for (const char* field : {"low", "high", "worst"}) {
    out["transform"].push_back(calculate(fmt::format("max({}, datum.{})", kSmallestShare, field),
                                         fmt::format("shown_{}", field)));
  }
  const auto bar = [&](const char* style, const json& from, const char* to) {
    return layer({{"type", "bar"}, {"style", style}, {"height", {{"band", 0.62}}}, {"clip", true}},
                 {{"y", names}, {"x", flushed_share(to)}, {"x2", from}, {"tooltip", hover}});
  };
  const json dot =
      layer({{"type", "point"}, {"filled", true}, {"style", "hover"}, {"size", 34}, {"opacity", 1}},
            {{"y", names}, {"x", flushed_share("shown_worst")}, {"tooltip", hover}});
  out["layer"] = json::array({bar("lost", {{"datum", kSmallestShare}}, "shown_low"),
                              bar("perhaps-lost", {{"field", "shown_low"}}, "shown_high"), dot});
  return out;
}

}  // namespace halfscope::reports::charts
