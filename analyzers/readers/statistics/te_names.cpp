// SPDX-License-Identifier: Apache-2.0
// LAYER_TENSOR_STATISTIC by transformer_engine/debug/features/utils/stats_buffer.py; tensors and
// statistics by log_tensor_stats.py, log_fp8_tensor_stats.py and log_nvfp4_tensor_stats.py there.
#include "analyzers/readers/statistics/te_names.hpp"

#include <array>
#include <utility>

namespace halfscope::analyzers::readers::statistics {

using frames::QuantisedStatistic;
using frames::Recipe;
using log::Role;

namespace {

constexpr std::array<std::pair<std::string_view, Magnitude>, kMagnitudes> kOfMagnitudes = {
    {{"_min", Magnitude::min},
     {"_max", Magnitude::max},
     {"_cur_amax", Magnitude::amax},
     {"_l2_norm", Magnitude::norm},
     {"_dynamic_range", Magnitude::dynamic_range}}};

constexpr std::pair<std::string_view, QuantisedStatistic> kOfQuantised[] = {
    {"_underflows%", QuantisedStatistic::underflows},
    {"_overflows%", QuantisedStatistic::overflows},
    {"_scale_inv_min", QuantisedStatistic::scale_inv_min},
    {"_scale_inv_max", QuantisedStatistic::scale_inv_max},
    {"_mse", QuantisedStatistic::mse}};

constexpr Recipe kNamed[] = {Recipe::fp8_delayed_scaling, Recipe::fp8_current_scaling,
                             Recipe::fp8_block_scaling, Recipe::mxfp8, Recipe::nvfp4};

/// "gradient" is the gradient of a layer's output, "dgrad" the gradient of its input. Both are
/// gradients of activations.
constexpr std::pair<std::string_view, Role> kTensors[] = {
    {"gradient", Role::activation_grad}, {"dgrad", Role::activation_grad},
    {"wgrad", Role::weight_grad},        {"weight", Role::weight},
    {"activation", Role::activation},    {"output", Role::activation}};

/// Removes an ending from a name, with an underscore before it if `underscore` is true. Returns
/// false if the name has no such ending or consists of it alone.
bool take_off(std::string_view& name, std::string_view ending, bool underscore) {
  const std::size_t size = ending.size() + (underscore ? 1 : 0);
  if (name.size() <= size || !name.ends_with(ending)) return false;
  if (underscore && name[name.size() - size] != '_') return false;
  name.remove_suffix(size);
  return true;
}

std::optional<Quantised> take_quantised(std::string_view& name) {
  std::string_view rest = name;
  Quantised found;
  found.columnwise = take_off(rest, "columnwise", true);
  for (const auto& [ending, statistic] : kOfQuantised) {
    if (!take_off(rest, ending, false)) continue;
    found.statistic = statistic;
    for (const Recipe recipe : kNamed) {
      if (take_off(rest, name_of(recipe), true)) found.recipe = recipe;
    }
    name = rest;
    return found;
  }
  return std::nullopt;
}

std::optional<Magnitude> take_magnitude(std::string_view& name) {
  for (const auto& [ending, statistic] : kOfMagnitudes) {
    if (take_off(name, ending, false)) return statistic;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TeName> te_name(std::string_view logged) {
  TeName name;
  if (const auto quantised = take_quantised(logged)) {
    name.statistic = *quantised;
  } else if (const auto magnitude = take_magnitude(logged)) {
    name.statistic = *magnitude;
  } else {
    return std::nullopt;
  }
  name.tensor = name.layer = logged;
  for (const auto& [kind, role] : kTensors) {
    if (!take_off(name.layer, kind, true)) continue;
    name.kind = kind;
    name.role = role;
    break;
  }
  return name;
}

}  // namespace halfscope::analyzers::readers::statistics
