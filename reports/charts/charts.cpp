// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "halfscope/table/boundary.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::charts {

using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;
using analyzers::underflow::Target;
using analyzers::underflow::TensorFindings;
using json = nlohmann::ordered_json;

namespace {

/// Returns a power of two divided by the scale; the text is a single power if the scale is one.
Limit power(int exponent, double scale) {
  if (const std::optional<int> log2 = exact_log2(scale)) {
    const int shifted = exponent - *log2;
    return {static_cast<double>(shifted), fmt::format("2^{}", shifted)};
  }
  return {exponent - std::log2(scale), fmt::format("2^{}/{}", exponent, scale)};
}

std::string divided(double value, double scale) {
  const std::string digits =
      value < 1e7 ? fmt::format("{:.7g}", value) : fmt::format("{:.3g}", value);
  if (scale == 1) return digits;
  const std::optional<int> log2 = exact_log2(scale);
  if (!log2) return fmt::format("{}/{}", digits, scale);
  return fmt::format("{}{}2^{}", digits, *log2 > 0 ? "/" : "*", std::abs(*log2));
}

/// Returns true for tensors whose magnitudes a window must show.
using Wanted = std::function<bool(const TensorFindings&)>;

using Counts = std::map<int, std::uint64_t>;  ///< by exponent

/// Returns the exponents [first, end) of all values but the smallest and the largest 1/`part` of
/// them; [0, 0) if there are no values.
std::pair<int, int> extent(const Counts& counts, std::uint64_t part) {
  std::uint64_t all = 0, up_to = 0;
  for (const auto& [exponent, count] : counts) all += count;
  std::optional<int> first;
  int end = 0;
  for (const auto& [exponent, count] : counts) {
    if (up_to < all - all / part) end = exponent + 1;
    up_to += count;
    if (!first && up_to > all / part) first = exponent;
  }
  return {first.value_or(0), end};
}

/// Returns for each role the exponents of all values but the smallest and the largest hundredth.
std::vector<std::pair<int, int>> role_extents(const Analysis& analysis, const Wanted& wanted) {
  std::map<log::Role, Counts> roles;
  for (const TensorFindings& tensor : analysis.tensors()) {
    if (!wanted(tensor)) continue;
    for (const auto& [exponent, count] : tensor.binades) roles[tensor.role][exponent] += count.high;
  }
  std::vector<std::pair<int, int>> out;
  for (const auto& [role, binades] : roles) out.push_back(extent(binades, 100));
  return out;
}

Window window_around(const Analysis& analysis, const Recommendation& advice, const Wanted& wanted) {
  Window window{.target = analysis.target,
                .loss_scale = analysis.loss_scale,
                .recommended = advice.static_log2,
                .recommended_as = answer::advised_word(advice),
                .lowest = advice.lowest_log2,
                .highest = advice.highest_log2};
  constexpr int kMargin = 4;  // binades beyond the limits of zero and overflow
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

json bounds_json(const Interval& count) { return json::array({count.low, count.high}); }

std::string counted_text(const Interval& count, double low, double high) {
  return fmt::format("{} ({})", answer::count_text(count), answer::share_range_text(low, high));
}

/// Returns a binade's count, and its share of the `of` finite nonzero values.
json binade_row(const analyzers::underflow::BinadeCount& binade, const Interval& of) {
  const auto share = [](std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
  };
  const Interval& count = binade.count;
  return {{"e", binade.exponent},
          {"low", count.low},
          {"high", count.high},
          {"values", counted_text(count, share(count.low, of.high),
                                  share(count.high, std::max(count.high, of.low)))}};
}

struct Class {
  const char* name;
  Interval Classes::*part;
};
constexpr Class kClasses[] = {{"flushed_to_zero", &Classes::flushed_to_zero},
                              {"subnormal", &Classes::subnormal},
                              {"normal", &Classes::normal},
                              {"overflow", &Classes::overflow}};

json scale_row(int log2, const Classes& classes, const Interval& of) {
  json row = {{"log2_scale", log2}, {"of", of.high}};
  for (const Class& each : kClasses) {
    const Interval& count = classes.*each.part;
    const Bounds share = answer::class_share(classes, each.part, of);
    row[each.name] = count.exact() ? json(count.low) : bounds_json(count);
    row["share"][each.name] = {share.low, share.high};
    row[std::string(each.name) + "_text"] = counted_text(count, share.low, share.high);
  }
  return row;
}

}  // namespace

Limits limits_of(const analyzers::underflow::Target& target, double scale) {
  const Format format = target.format;
  const bool flushes = target.subnormals != Subnormals::keep;
  const int zero = flushes ? format.emin() : format.min_quantum_exponent() - 1;
  const double overflow = to_double(target.boundaries(1, 1).overflow);
  return {.zero = power(zero, scale),
          .subnormal = power(format.emin(), scale),
          .overflow = {std::log2(overflow) - std::log2(scale), divided(overflow, scale)}};
}

Window window_of(const Analysis& analysis, const Recommendation& advice) {
  return window_around(analysis, advice, [](const auto&) { return true; });
}

Window gradient_window(const Analysis& analysis, const Recommendation& advice) {
  return window_around(analysis, advice, [](const auto& tensor) { return tensor.loss_scaled; });
}

Window unscaled(Window window) {
  window.loss_scale = 1;
  window.recommended = window.lowest = window.highest = std::nullopt;
  return window;
}

std::string left_out(const Window& window,
                     const std::vector<analyzers::underflow::BinadeCount>& binades) {
  Interval below(0), above(0);
  for (const auto& [exponent, count] : binades) {
    if (exponent < window.first_exponent) below += count;
    if (exponent >= window.last_exponent) above += count;
  }
  return answer::not_drawn_text(below, "below", window.first_exponent) +
         answer::not_drawn_text(above, "at or above", window.last_exponent);
}

std::vector<Scale> scales_of(const Window& window) {
  std::vector<Scale> out = {{.scale = window.loss_scale, .advised = false}};
  if (window.recommended && std::exp2(*window.recommended) != window.loss_scale) {
    out.push_back({.scale = std::exp2(*window.recommended), .advised = true});
  }
  return out;
}

int first_ratio(const Target& target) { return -target.format.precision - 20; }

UpdateWindow update_window(const UpdateTable& table, const Target& target) {
  Counts weights, updates;
  for (const auto& [at, cell] : table.cells) {
    if (at.first == UpdateTable::kZeroWeight) continue;
    weights[at.first] += cell.count;
    updates[at.second] += cell.count;
  }
  UpdateWindow out;
  std::tie(out.first_weight, out.end_weight) = extent(weights, 1000);
  std::tie(out.first_update, out.end_update) = extent(updates, 1000);
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

json bar_rows(const answer::Series& series) {
  json out = json::array();
  for (const auto& binade : series.binades) {
    out.push_back(binade_row(binade, series.counts.finite_nonzero));
  }
  return out;
}

json cell_rows(const answer::Series& series) {
  json out = json::array();
  for (const answer::Column& column : series.columns) {
    for (const auto& binade : column.binades) {
      json row = binade_row(binade, series.counts.finite_nonzero);
      row["step"] = column.first_step;
      row["last"] = column.last_step;
      out.push_back(std::move(row));
    }
  }
  return out;
}

json scale_rows(const answer::Tensors& tensors, const answer::Series& series,
                const analyzers::underflow::Target& target) {
  json out = json::array();
  int log2 = analyzers::underflow::kFirstLog2Scale;
  for (const Classes& classes : answer::by_scale(tensors, target)) {
    out.push_back(scale_row(log2++, classes, series.counts.finite_nonzero));
  }
  return out;
}

}  // namespace halfscope::reports::charts
