// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/statistics/te_printed.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

namespace halfscope::analyzers::readers::statistics {

using frames::QuantisedStatistic;
using frames::Recipe;
using log::Role;

namespace {

/// Appends a value. The vector grows by a quarter: doubling would leave half of the memory unused.
template <typename T>
void append(std::vector<T>& to, T value) {
  if (to.size() == to.capacity()) to.reserve(to.size() + to.size() / 4 + 4);
  to.push_back(value);
}

/// The elements at these places, in their order.
template <typename T>
std::vector<T> picked(const std::vector<T>& from, const std::vector<std::size_t>& places) {
  std::vector<T> out;
  out.reserve(places.size());
  for (const std::size_t place : places) out.push_back(from[place]);
  return out;
}

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

std::uint32_t Steps::number_of(std::int64_t step) {
  if (!steps_.empty() && steps_[last_] == step) return last_;
  const auto [place, is_new] =
      numbers_.try_emplace(step, static_cast<std::uint32_t>(steps_.size()));
  if (is_new) steps_.push_back(step);
  last_ = place->second;
  return last_;
}

void PrintedSeries::add(std::uint32_t step, double value) {
  append(steps, step);
  append(values, value);
}

void PrintedSeries::add_line(std::uint64_t line) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  append(lines, static_cast<std::uint32_t>(std::min(line, kMost)));
}

void PrintedSeries::sort(const Steps& steps_of_log) {
  const auto not_before = [&](std::uint32_t a, std::uint32_t b) {
    return steps_of_log[a] >= steps_of_log[b];
  };
  if (std::adjacent_find(steps.begin(), steps.end(), not_before) == steps.end()) return;
  std::vector<std::size_t> places(steps.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
    return steps_of_log[steps[a]] < steps_of_log[steps[b]];
  });
  const auto of_step = [&](std::size_t a, std::size_t b) { return steps[a] == steps[b]; };
  // In reverse order the first place of a step is that of its last line.
  const auto kept = std::unique(places.rbegin(), places.rend(), of_step);
  places.erase(places.begin(), kept.base());
  steps = picked(steps, places);
  values = picked(values, places);
  if (!lines.empty()) lines = picked(lines, places);
}

PrintedSeries* PrintedFile::known(std::string_view logged) {
  const auto place = by_name_.find(logged);
  return place == by_name_.end() ? nullptr : place->second;
}

PrintedSeries* PrintedFile::find(std::string_view logged) {
  if (last_ != nullptr && last_->next != nullptr && last_->next->logged == logged) {
    return last_ = last_->next;
  }
  PrintedSeries* found = known(logged);
  if (found == nullptr) {
    if (!te_name(logged)) return nullptr;
    const auto place = by_name_.try_emplace(std::string(logged)).first;
    series_.push_back({place->first, *te_name(place->first), {}, {}, {}});
    found = place->second = &series_.back();
  }
  if (last_ != nullptr) last_->next = found;
  return last_ = found;
}

void PrintedFile::sort(const Steps& steps) {
  for (PrintedSeries& series : series_) series.sort(steps);
}

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
