// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "halfscope/table/boundary.hpp"
#include "reports/charts/charts.hpp"
#include "reports/charts/limits.hpp"

namespace halfscope::reports::charts {

using analyzers::underflow::Target;

using json = nlohmann::ordered_json;

namespace {

/// Returns a scale as text: "scale 1", "scale 2^10".
std::string short_name(double scale) {
  const std::optional<int> log2 = exact_log2(scale);
  return log2.value_or(0) == 0 ? fmt::format("scale {}", scale) : fmt::format("scale 2^{}", *log2);
}

/// Adds the limits of the format at one scale, and the bands of magnitudes between them.
void add_limits(const Window& window, const Limits& limits, const char* place, json& to) {
  for (const Limit* limit : {&limits.zero, &limits.subnormal, &limits.overflow}) {
    to["limits"].push_back({{"place", place}, {"at", limit->position}, {"label", limit->label}});
  }
  const auto add = [&](const char* becomes, double from, double end, const std::string& where) {
    to["bands"].push_back(
        {{"place", place}, {"class", becomes}, {"from", from}, {"to", end}, {"where", where}});
  };
  const auto& [zero, subnormal, overflow] = limits;
  add("zero", window.first_exponent, zero.position, "at and below " + zero.label);
  add("subnormal", zero.position, subnormal.position, "up to " + subnormal.label);
  add("normal", subnormal.position, overflow.position, "below " + overflow.label);
  add("overflow", overflow.position, window.last_exponent, overflow.label + " and above");
}

/// Returns the window, and each scale with its limits. A scale's place is "now" or "advised", or
/// "alone" if it is the only one.
json limit_parameters(const Window& window) {
  json out = {{"window", {window.first_exponent, window.last_exponent}}};
  const std::vector<Scale> scales = scales_of(window);
  for (const Scale& scale : scales) {
    const char* place = scale.advised ? "advised" : scales.size() == 1 ? "alone" : "now";
    const std::string name = short_name(scale.scale);
    add_limits(window, limits_of(window.target, scale.scale), place, out);
    out["scales"].push_back(
        {{"place", place},
         {"at", std::log2(scale.scale)},
         {"name", name},
         {"label", scale.advised ? fmt::format("{} {}", window.recommended_as, name) : name}});
  }
  return out;
}

/// Returns the magnitudes at which values become zero, subnormal or infinite.
json positions(const Window& window, const Scale& scale) {
  const Limits limits = limits_of(window.target, scale.scale);
  return {limits.zero.position, limits.subnormal.position, limits.overflow.position};
}

}  // namespace

json series_parameters(const Window& window) {
  using namespace analyzers::underflow;
  json out = limit_parameters(window);
  out["loss-scales"] = {kFirstLog2Scale - 0.5, kLastLog2Scale + 0.5};
  json& good = out["good-scales"] = json::array();
  if (window.lowest && window.highest && *window.lowest <= *window.highest) {
    good.push_back({{"from", *window.lowest - 0.5}, {"to", *window.highest + 0.5}});
  }
  return out;
}

json gradient_parameters(const Window& window) {
  const std::vector<Scale> scales = scales_of(window);
  json out = limit_parameters(window);
  out["limits-now"] = positions(window, scales.front());
  out["limits-then"] = positions(window, scales.back());
  json& shown = out["classes-shown"] = json::array();
  for (const Scale& scale : scales) {
    shown.push_back({{"field", scale.advised ? "then" : "now"},
                     {"type", "nominal"},
                     {"title", "at " + short_name(scale.scale)}});
  }
  return out;
}

json update_map_parameters(const UpdateWindow& window, const Target& target) {
  const int p = target.format.precision;
  return {{"weights-drawn", {window.first_weight, window.end_weight}},
          {"updates-drawn", {window.first_update, window.end_update}},
          {"rule",
           {{{"w", window.first_weight}, {"u", window.first_weight - p}},
            {{"w", window.end_weight}, {"u", window.end_weight - p}}}},
          {"zero", limits_of(target, 1).zero.position}};
}

json ratio_parameters(const Target& target) {
  const int p = target.format.precision;
  const std::string label = fmt::format("rule of {}", std::uint64_t{1} << p);
  return {{"first-ratio", first_ratio(target)},
          {"rule", json::array({{{"at", -p}, {"label", label}}})}};
}

}  // namespace halfscope::reports::charts
