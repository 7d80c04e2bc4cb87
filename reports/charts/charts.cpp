// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/charts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "reports/answer/no_scale.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/binades.hpp"
#include "reports/charts/limits.hpp"
#include "reports/charts/vega.hpp"

namespace halfscope::reports::charts {

using json = nlohmann::ordered_json;
using namespace vega;

namespace {

/// What a window shows besides the limits.
using Wanted = std::function<bool(const analyzers::underflow::TensorFindings&)>;

/// The exponents between which all but the lowest and the highest hundredth of each role lie.
std::vector<std::pair<int, int>> role_extents(const analyzers::underflow::Analysis& analysis,
                                              const Wanted& wanted) {
  std::map<log::Role, std::map<int, std::uint64_t>> roles;
  for (const analyzers::underflow::TensorFindings& tensor : analysis.tensors()) {
    if (!wanted(tensor)) continue;
    for (const auto& [exponent, count] : tensor.binades) roles[tensor.role][exponent] += count.high;
  }
  std::vector<std::pair<int, int>> out;
  for (const auto& [role, binades] : roles) {
    std::uint64_t all = 0, up_to = 0;
    for (const auto& [exponent, count] : binades) all += count;
    std::optional<int> first;
    int last = 0;
    for (const auto& [exponent, count] : binades) {
      if (up_to < all - all / 100) last = exponent + 1;
      up_to += count;
      if (!first && up_to > all / 100) first = exponent;
    }
    if (first) out.emplace_back(*first, last);
  }
  return out;
}

Window window_around(const analyzers::underflow::Analysis& analysis,
                     const analyzers::recommend::Recommendation& advice, const Wanted& wanted) {
  Window window{.target = analysis.target,
                .loss_scale = analysis.loss_scale,
                .recommended = advice.static_log2,
                .recommended_as = answer::advised_word(advice),
                .lowest = advice.lowest_log2,
                .highest = advice.highest_log2};
  constexpr int kMargin = 4;  // binades of zero and overflow shown beyond the limits
  double first = 0, last = 0;
  for (const Scale& scale : scales_of(window)) {
    const Limits limits = limits_of(window.target, scale.scale);
    first = std::min(first, limits.zero.position - kMargin);
    last = std::max(last, limits.overflow.position + kMargin);
  }
  for (const auto& [exponent, above] : role_extents(analysis, wanted)) {
    first = std::min(first, static_cast<double>(exponent));
    last = std::max(last, static_cast<double>(above));
  }
  window.first_exponent = static_cast<int>(std::floor(first));
  window.last_exponent = static_cast<int>(std::ceil(last));
  return window;
}

}  // namespace

Window window_of(const analyzers::underflow::Analysis& analysis,
                 const analyzers::recommend::Recommendation& advice) {
  return window_around(analysis, advice, [](const auto&) { return true; });
}

Window gradient_window(const analyzers::underflow::Analysis& analysis,
                       const analyzers::recommend::Recommendation& advice) {
  return window_around(analysis, advice, [](const auto& tensor) { return tensor.counted; });
}

std::string left_out(const Window& window,
                     const std::vector<analyzers::underflow::BinadeCount>& binades) {
  Interval below(0), above(0);
  for (const auto& [exponent, count] : binades) {
    if (exponent < window.first_exponent) below += count;
    if (exponent >= window.last_exponent) above += count;
  }
  std::string out;
  const auto tell = [&](const Interval& count, const char* side, int exponent) {
    if (count.high == 0) return;
    out += fmt::format(" Not drawn: {} {} 2^{}.",
                       answer::count_text(count) + (count.high == 1 ? " value" : " values"), side,
                       exponent);
  };
  tell(below, "below", window.first_exponent);
  tell(above, "at or above", window.last_exponent);
  return out;
}

json histogram(const Window& window, Axis counts) {
  json low = count_axis(counts), high = low;
  low["field"] = "sure";
  high["field"] = "high";
  const json x = magnitude(window, "e"), end = {{"field", "end"}};
  const json hover = tooltip({{"magnitude", "magnitude"}, {"values", "values"}});
  const double foot = counts == Axis::linear ? 0.0 : kCountFloor;
  const json floor = {{"datum", foot}};
  json out = chart("bars", "Histogram of magnitudes, one bar a power of two", 260);
  out["transform"] = binade_fields();
  out["transform"].push_back(calculate(fmt::format("max(datum.low, {})", foot), "sure"));
  out["layer"] =
      json::array({layer({{"type", "rect"}, {"style", "count"}, {"clip", true}},
                         {{"x", x}, {"x2", end}, {"y", low}, {"y2", floor}, {"tooltip", hover}}),
                   layer({{"type", "rect"}, {"style", "uncertain"}, {"clip", true}},
                         {{"x", x},
                          {"x2", end},
                          {"y", high},
                          {"y2", {{"field", "sure"}}},
                          {"strokeWidth", where_uncertain(1, 0)},
                          {"tooltip", hover}})});
  const std::vector<Scale> scales = scales_of(window);
  for (const Scale& scale : scales) add_limits(window, scale, scales.size() == 1, out["layer"]);
  return out;
}

namespace {

/// How faint a cell is of which less than half is surely there.
constexpr double kHardlySure = 0.35;

json where_hardly_sure(double opacity) {
  return {{"condition", {{"test", "2 * datum.low < datum.high"}, {"value", opacity}}},
          {"value", 1}};
}

}  // namespace

json heat_map(const Window& window) {
  json out = chart("cells", "Heat map of magnitudes by recorded step", 260);
  const json scale = {{"type", "log"}, {"domainMin", 1}};
  const json colour = {
      {"field", "high"},
      {"type", "quantitative"},
      {"scale", scale},
      {"legend",
       {{"title", "values"}, {"labelExpr", power_of_ten() + " ? format(datum.value, '~s') : ''"}}}};
  json transform = binade_fields();
  transform.push_back(calculate(
      "datum.step == datum.last ? '' + datum.step : datum.step + ' to ' + datum.last", "steps"));
  const json cell = {
      {"x",
       {{"field", "step"},
        {"type", "ordinal"},
        {"axis", {{"title", "recorded step"}, {"labelAngle", 0}, {"labelOverlap", true}}}}},
      {"y", magnitude(window, "e")},
      {"y2", {{"field", "end"}}},
      {"color", colour},
      {"fillOpacity", where_hardly_sure(kHardlySure)},
      {"strokeOpacity", where_hardly_sure(0)},  // faint edges would lie on one another
      {"tooltip", tooltip({{"steps", "step"}, {"magnitude", "magnitude"}, {"values", "values"}})}};
  json cells = layer({{"type", "rect"},
                      {"clip", true},
                      {"strokeWidth", 1},  // in the cell's own colour: no seams between cells
                      {"stroke", {{"expr", "scale('color', datum.high)"}}}},
                     cell);
  cells["transform"] = transform;
  out["layer"] = json::array({cells});
  for (const Scale& drawn : scales_of(window)) {
    for (const std::string& style : {std::string("halo"), drawn.style}) {
      out["layer"].push_back(layer(positions(limits_of(window.target, drawn.scale)),
                                   {{"type", "rule"}, {"style", style}},
                                   {{"y", magnitude(window, "at")}}));
    }
  }
  return out;
}

}  // namespace halfscope::reports::charts
