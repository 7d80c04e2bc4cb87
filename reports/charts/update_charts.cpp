// SPDX-License-Identifier: Apache-2.0
// Charts of what becomes of weight updates.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "reports/charts/charts.hpp"
#include "reports/charts/limits.hpp"
#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts {

using analyzers::underflow::Target;

using json = nlohmann::ordered_json;
using namespace vega;

namespace {

/// [first, end) without the outermost thousandths on both sides.
std::pair<int, int> extent(const std::map<int, std::uint64_t>& counts) {
  std::uint64_t all = 0, up_to = 0;
  for (const auto& [e, count] : counts) all += count;
  std::optional<int> first;
  int end = 0;
  for (const auto& [e, count] : counts) {
    if (up_to < all - all / 1000) end = e + 1;
    up_to += count;
    if (!first && up_to > all / 1000) first = e;
  }
  return {first.value_or(0), end};
}

json binade_axis(const char* field, int first, int end, const char* title) {
  return {{"field", field},
          {"type", "quantitative"},
          {"axis", exponent_axis(title)},
          {"scale", {{"domain", {first, end}}, {"nice", false}, {"zero", false}}}};
}

/// Sentences for hovering: how many, and how many of them are lost.
json lost_fields() {
  return json::array(
      {calculate("format(datum.count, ',')", "updates"),
       calculate("format(datum.lost, ',') + ' (' + format(100 * datum.lost / datum.count, '.3~r') "
                 "+ ' %)'",
                 "lost_text"),
       calculate("datum.lost / datum.count", "share")});
}

json exponent_of_ratio(const char* field, const std::string& title,
                       std::optional<int> first = std::nullopt) {
  json scale = {{"nice", false}, {"zero", false}};
  if (first) scale["domainMin"] = *first;
  return {
      {"field", field}, {"type", "quantitative"}, {"axis", exponent_axis(title)}, {"scale", scale}};
}

/// From what is kept to what is lost.
json share_colour() {
  return {{"field", "share"},
          {"type", "quantitative"},
          {"scale", {{"domain", {0, 1}}, {"range", "diverging"}, {"interpolate", "rgb"}}},
          {"legend", {{"title", "lost"}, {"format", ".0%"}, {"values", {0, 0.5, 1}}}}};
}

json opacity_by_count() {
  return {{"field", "count"},
          {"type", "quantitative"},
          {"scale", {{"type", "log"}, {"range", {0.35, 1}}}},
          {"legend", nullptr}};
}

}  // namespace

int first_ratio(const Target& target) { return -target.format.precision - 20; }

UpdateWindow update_window(const UpdateTable& table, const Target& target) {
  std::map<int, std::uint64_t> weights, updates;
  for (const auto& [at, cell] : table.cells) {
    if (at.first == UpdateTable::kZeroWeight) continue;
    weights[at.first] += cell.count;
    updates[at.second] += cell.count;
  }
  UpdateWindow out;
  std::tie(out.first_weight, out.end_weight) = extent(weights);
  std::tie(out.first_update, out.end_update) = extent(updates);
  constexpr int kZerosShown = 6;
  const int zero = static_cast<int>(std::floor(limits_of(target, 1).zero.position));
  out.first_update = std::clamp(zero - kZerosShown, out.first_update, out.end_update);
  for (const auto& [at, cell] : table.cells) {
    const bool shown = at.first >= out.first_weight && at.first < out.end_weight &&
                       at.second >= out.first_update && at.second < out.end_update;
    if (!shown) out.left_out += cell.count;
  }
  return out;
}

json update_map(const UpdateWindow& window, const Target& target) {
  const auto x = [&](const char* field) {
    return binade_axis(field, window.first_weight, window.end_weight, "weight");
  };
  const auto y = [&](const char* field) {
    return binade_axis(field, window.first_update, window.end_update, "update");
  };
  const int p = target.format.precision;
  json out = chart("pairs", "Share of updates lost, by magnitude of weight and update", 320);
  json cells = layer(
      {{"type", "rect"}, {"clip", true}},
      {{"x", x("w")},
       {"x2", {{"field", "w_end"}}},
       {"y", y("u")},
       {"y2", {{"field", "u_end"}}},
       {"color", share_colour()},
       {"opacity", opacity_by_count()},
       {"tooltip",
        tooltip({{"where", "weight, update"}, {"updates", "updates"}, {"lost_text", "lost"}})}});
  cells["transform"] = lost_fields();
  for (const json& more : {calculate("datum.w + 1", "w_end"), calculate("datum.u + 1", "u_end"),
                           calculate("'2^' + datum.w + ', 2^' + datum.u", "where")}) {
    cells["transform"].push_back(more);
  }
  const json ends = json::array({{{"x", window.first_weight}, {"y", window.first_weight - p}},
                                 {{"x", window.end_weight}, {"y", window.end_weight - p}}});
  const json zero = json::array({{{"at", limits_of(target, 1).zero.position}}});
  out["layer"] = json::array({cells});
  for (const char* style : {"halo", "advised"}) {
    out["layer"].push_back(layer(ends, {{"type", "line"}, {"style", style}, {"clip", true}},
                                 {{"x", x("x")}, {"y", y("y")}}));
  }
  for (const char* style : {"halo", "now"}) {
    out["layer"].push_back(
        layer(zero, {{"type", "rule"}, {"style", style}, {"clip", true}}, {{"y", y("at")}}));
  }
  return out;
}

json ratio_histogram(const Target& target, Axis counts) {
  json all = count_axis(counts, "updates"), lost = all;
  all["field"] = "count";
  lost["field"] = "lost";
  const auto ratio = [&](const char* field) {
    return exponent_of_ratio(field, "|update| / |weight|", first_ratio(target));
  };
  const json x = ratio("e"), end = {{"field", "end"}};
  const json floor = {{"datum", counts == Axis::linear ? 0.0 : kCountFloor}};
  const json hover = tooltip({{"where", "ratio"}, {"updates", "updates"}, {"lost_text", "lost"}});
  json out =
      chart("ratios", "Updates by their size beside the weight; the lost ones coloured", 220);
  out["transform"] = lost_fields();
  out["transform"].push_back(calculate("datum.e + 1", "end"));
  out["transform"].push_back(calculate("'2^' + datum.e + ' to 2^' + (datum.e + 1)", "where"));
  const int rule = -target.format.precision;
  const json mark = json::array(
      {{{"at", rule},
        {"label", fmt::format("rule of {}", std::uint64_t{1} << target.format.precision)}}});
  out["layer"] = json::array(
      {layer({{"type", "rect"}, {"style", "count"}, {"clip", true}},
             {{"x", x}, {"x2", end}, {"y", all}, {"y2", floor}, {"tooltip", hover}}),
       layer({{"type", "rect"}, {"style", "lost"}, {"clip", true}},
             {{"x", x}, {"x2", end}, {"y", lost}, {"y2", floor}, {"tooltip", hover}}),
       layer(mark, {{"type", "rule"}, {"style", "advised"}}, {{"x", ratio("at")}}),
       layer(mark, {{"type", "text"}, {"style", "advised-label"}},
             {{"x", ratio("at")}, {"y", {{"value", -8}}}, {"text", {{"field", "label"}}}})});
  return out;
}

json error_histogram(Axis counts) {
  json y = count_axis(counts, "updates");
  y["field"] = "count";
  json out = chart("errors", "Applied updates by their relative error", 220);
  out["transform"] = json::array({calculate("datum.e + 1", "end"),
                                  calculate("format(datum.count, ',')", "updates"),
                                  calculate("'2^' + datum.e + ' to 2^' + (datum.e + 1)", "where")});
  out["layer"] = json::array(
      {layer({{"type", "rect"}, {"style", "count"}, {"clip", true}},
             {{"x", exponent_of_ratio("e", "relative error of applied updates")},
              {"x2", {{"field", "end"}}},
              {"y", y},
              {"y2", {{"datum", counts == Axis::linear ? 0.0 : kCountFloor}}},
              {"tooltip", tooltip({{"where", "relative error"}, {"updates", "updates"}})}})});
  return out;
}

json outcome_bars() {
  json out = bar_chart("outcomes", "What becomes of the updates of each weight");
  out["transform"] = json::array(
      {calculate("format(datum.count, ',') + ' of ' + format(datum.of, ',')", "updates"),
       calculate("datum.count / datum.of", "share")});
  out["mark"] = {{"type", "bar"}, {"height", {{"band", 0.72}}}};
  out["encoding"] = {
      {"y", row_names("name")},
      {"x",
       {{"field", "share"},
        {"type", "quantitative"},
        {"stack", "zero"},
        {"scale", {{"domain", {0, 1}}}},
        {"axis", {{"title", "share of updates"}, {"format", ".0%"}, {"tickCount", 5}}}}},
      {"order", {{"field", "order"}}},
      {"color",
       {{"field", "outcome"},
        {"type", "nominal"},
        {"scale", {{"domain", {"underflow", "swamped", "exact", "overflow", "applied"}}}},
        {"legend", {{"title", nullptr}, {"orient", "bottom"}, {"columns", 3}}}}},
      {"tooltip", tooltip({{"name", "weight"}, {"outcome", "outcome"}, {"updates", "updates"}})}};
  return out;
}

}  // namespace halfscope::reports::charts
