// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "reports/answer/captions.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/limits.hpp"

namespace halfscope::reports::charts {

using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;
using analyzers::underflow::Target;
using analyzers::underflow::TensorFindings;

namespace {

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

}  // namespace

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

}  // namespace halfscope::reports::charts
