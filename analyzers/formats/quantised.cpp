// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/quantised.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace halfscope::analyzers::formats {

using frames::QuantisedSeries;
using frames::QuantisedStatistic;
using frames::QuantisedValue;
using frames::Recipe;

namespace {

constexpr double kPercent = 0.01;

AtStep share_of(const QuantisedValue& value) {
  return {value.step, value.low * kPercent, value.high * kPercent};
}
AtStep as_is(const QuantisedValue& value) { return {value.step, value.low, value.high}; }

/// Returns the first of the largest values.
AtStep largest_of(std::span<const QuantisedValue> values, AtStep (*of)(const QuantisedValue&)) {
  const auto smaller = [](const QuantisedValue& a, const QuantisedValue& b) {
    return a.high < b.high;
  };
  return of(*std::max_element(values.begin(), values.end(), smaller));
}

AtStep least_of(const QuantisedSeries& series) {
  const auto smaller = [](const QuantisedValue& a, const QuantisedValue& b) {
    return a.low < b.low;
  };
  return as_is(*std::min_element(series.values.begin(), series.values.end(), smaller));
}

/// Returns true if a printed share may be at the limit or above, by its upper bound.
bool reaches(const QuantisedValue& value, double limit) { return value.high * kPercent >= limit; }

/// Returns the number of first steps that are at the limit and do not count.
std::size_t first_steps(std::span<const QuantisedValue> values, double limit) {
  const auto below = [limit](const QuantisedValue& value) { return !reaches(value, limit); };
  const auto first = std::ranges::find_if(values, below);
  const auto steps = static_cast<std::size_t>(first - values.begin());
  return steps <= kFirstSteps && first != values.end() ? steps : 0;
}

void add_limits(QuantisedUnderflow& to, const QuantisedSeries& series) {
  for (std::size_t i = 0; i < kUnderflowLimits.size(); ++i) {
    for (const QuantisedValue& value : series.values) {
      if (!reaches(value, kUnderflowLimits[i])) {
        to.since[i].reset();
        to.at_end[i] = 0;
        continue;
      }
      ++to.steps_above[i];
      ++to.at_end[i];
      if (!to.since[i]) to.since[i] = value.step;
    }
    to.steps_above[i] -= first_steps(series.values, kUnderflowLimits[i]);
  }
}

/// Sets the largest share of the steps that count, and of the first steps if these do not.
void add_largest(QuantisedUnderflow& to, std::span<const QuantisedValue> values, double limit) {
  to.first_steps = first_steps(values, limit);
  to.largest = largest_of(values.subspan(to.first_steps), share_of);
  if (to.first_steps > 0) to.at_first = largest_of(values.first(to.first_steps), share_of);
}

std::vector<UnderflowCell> cells_of(const QuantisedSeries& series,
                                    const std::vector<QuantisedColumn>& columns) {
  std::vector<UnderflowCell> cells;
  std::uint32_t column = 0;
  for (const QuantisedValue& value : series.values) {
    while (columns[column].last_step < value.step) ++column;
    const double share = share_of(value).middle();
    if (cells.empty() || cells.back().column != column) cells.push_back({column, share});
    cells.back().share = std::max(cells.back().share, share);
  }
  return cells;
}

/// First steps at the limit do not count.
QuantisedUnderflow shares_of(const QuantisedSeries& series,
                             const std::vector<QuantisedColumn>& columns, std::size_t limit) {
  QuantisedUnderflow found;
  add_largest(found, series.values, kUnderflowLimits[limit]);
  found.last = share_of(series.values.back());
  found.steps = series.values.size();
  std::vector<double> low, high;
  for (const QuantisedValue& value : series.values) {
    low.push_back(value.low * kPercent);
    high.push_back(value.high * kPercent);
  }
  found.median_low = median_of(std::move(low));
  found.median_high = median_of(std::move(high));
  add_limits(found, series);
  found.cells = cells_of(series, columns);
  return found;
}

/// Returns columns of equal numbers of steps; the last may be shorter.
std::vector<QuantisedColumn> columns_of(std::span<const std::int64_t> steps) {
  const std::size_t run = (steps.size() + kMostColumns - 1) / kMostColumns;
  std::vector<QuantisedColumn> columns;
  for (std::size_t i = 0; i < steps.size(); i += run) {
    columns.push_back({steps[i], steps[std::min(i + run, steps.size()) - 1]});
  }
  return columns;
}

/// Returns true for recipes that a run surely used. A framework may also measure other recipes as a
/// what-if, but these are measured only if they are used.
bool surely_used(Recipe recipe) {
  return recipe == Recipe::own || recipe == Recipe::nvfp4 || recipe == Recipe::fp8_delayed_scaling;
}

bool has_share(const QuantisedTensor& tensor) { return tensor.underflow || tensor.overflow; }

/// If no recipe was surely used, the one with the most tensors is judged.
void mark_judged(std::vector<QuantisedTensor>& tensors) {
  std::map<Recipe, std::size_t> counts;
  for (const QuantisedTensor& tensor : tensors) {
    if (has_share(tensor)) ++counts[tensor.recipe];
  }
  const auto sure = std::ranges::any_of(counts, [](const auto& c) { return surely_used(c.first); });
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto most = std::max_element(counts.begin(), counts.end(), fewer);
  for (QuantisedTensor& tensor : tensors) {
    tensor.judged =
        has_share(tensor) && (sure ? surely_used(tensor.recipe) : tensor.recipe == most->first);
  }
}

/// Returns the layers with tensors for which wanted(tensor) is true.
template <typename Wanted>
std::vector<LayerLoss> layers_of(const std::vector<QuantisedTensor>& tensors,
                                 const Wanted& wanted) {
  std::vector<LayerLoss> layers;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const QuantisedTensor& tensor = tensors[i];
    if (!tensor.underflow || !wanted(tensor)) continue;
    const auto [place, is_new] = places.try_emplace(tensor.layer, layers.size());
    if (is_new) layers.push_back({tensor.layer, i, {}, false, 0});
    LayerLoss& layer = layers[place->second];
    if (lost_more(tensor, tensors[layer.worst])) layer.worst = i;
    layer.at_first = layer.at_first || tensor.underflow->at_first;
    if (tensor.underflow->lasts(kKeepLimit)) layer.lasting.push_back(i);
    for (std::size_t limit = layer.limits; limit < kUnderflowLimits.size(); ++limit) {
      if (tensor.underflow->lasts(limit)) layer.limits = limit + 1;
    }
  }
  return layers;
}

std::vector<RecipeLoss> recipes_of(const std::vector<QuantisedTensor>& tensors) {
  std::map<Recipe, RecipeLoss> found;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const QuantisedTensor& tensor = tensors[i];
    if (!tensor.underflow) continue;
    RecipeLoss first{tensor.recipe, tensor.judged, 0, 0, i};
    RecipeLoss& loss = found.try_emplace(tensor.recipe, first).first->second;
    if (lost_more(tensor, tensors[loss.worst])) loss.worst = i;
  }
  std::vector<RecipeLoss> recipes;
  for (const auto& named : found) {
    RecipeLoss loss = named.second;
    const auto of_recipe = [&loss](const QuantisedTensor& t) { return t.recipe == loss.recipe; };
    for (const LayerLoss& layer : layers_of(tensors, of_recipe)) {
      ++loss.layers;
      loss.to_keep += layer.lasting.empty() ? 0 : 1;
    }
    recipes.push_back(loss);
  }
  return recipes;
}

}  // namespace

double median_of(std::vector<double> values) {
  const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), values.begin() + half, values.end());
  const double upper = values[static_cast<std::size_t>(half)];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + half) + upper) / 2;
}

bool QuantisedUnderflow::lasts(std::size_t limit) const {
  const auto above = static_cast<double>(steps_above[limit]);
  if (above == 0) return false;
  return above >= kLastingShare * static_cast<double>(steps) || at_end[limit] >= kLastingAtEnd;
}

bool lost_more(const QuantisedTensor& a, const QuantisedTensor& b) {
  const auto loss = [](const QuantisedTensor& tensor) {
    const QuantisedUnderflow& u = *tensor.underflow;
    return std::pair(u.lasts(kKeepLimit), u.largest.high);
  };
  return loss(a) > loss(b);
}

std::string QuantisedTensor::name() const { return frames::tensor_of(layer, tensor); }

std::vector<const LayerLoss*> QuantisedLog::to_keep() const {
  std::vector<const LayerLoss*> found;
  for (const LayerLoss& layer : layers) {
    if (!layer.lasting.empty()) found.push_back(&layer);
  }
  return found;
}

std::vector<const LayerLoss*> QuantisedLog::briefly() const {
  std::vector<const LayerLoss*> found;
  for (const LayerLoss& layer : layers) {
    const bool reaches_it = layer.at_first || underflow_of(layer).steps_above[kKeepLimit] > 0;
    if (layer.lasting.empty() && reaches_it) found.push_back(&layer);
  }
  return found;
}

std::size_t QuantisedLog::lasting_at(std::size_t limit) const {
  const auto is = [limit](const LayerLoss& layer) { return layer.limits > limit; };
  return static_cast<std::size_t>(std::ranges::count_if(layers, is));
}

const LayerLoss* QuantisedLog::worst_of(const std::vector<const LayerLoss*>& some) const {
  const auto lost_less = [this](const LayerLoss* a, const LayerLoss* b) {
    return lost_more(tensors[b->worst], tensors[a->worst]);
  };
  const auto most = std::ranges::max_element(some, lost_less);
  return most == some.end() ? nullptr : *most;
}

const QuantisedTensor* QuantisedLog::most_clipped() const {
  const QuantisedTensor* most = nullptr;
  for (const QuantisedTensor& tensor : tensors) {
    if (!tensor.judged || !tensor.clips) continue;
    if (most == nullptr || tensor.overflow->high > most->overflow->high) most = &tensor;
  }
  return most;
}

std::size_t QuantisedLog::clipping_layers() const {
  std::set<std::string_view> names;
  for (const QuantisedTensor& tensor : tensors) {
    if (tensor.judged && tensor.clips) names.insert(tensor.layer);
  }
  return names.size();
}

QuantisedTensor& QuantisedCollector::tensor_of(const QuantisedSeries& series) {
  if (logs_.empty() || logs_.back().log != log_) {
    logs_.push_back({log_, series.log_steps.size(), columns_of(series.log_steps), {}, {}, {}});
    places_.clear();
  }
  std::vector<QuantisedTensor>& tensors = logs_.back().tensors;
  std::string key(series.layer);
  for (const std::string_view part : {series.tensor, name_of(series.recipe)}) {
    key.append(1, '\0').append(part);
  }
  key += series.columnwise ? '1' : '0';
  const auto [place, is_new] = places_.try_emplace(std::move(key), tensors.size());
  if (is_new) {
    QuantisedTensor& tensor = tensors.emplace_back();
    tensor.layer = series.layer;
    tensor.tensor = series.tensor;
    tensor.role = series.role;
    tensor.recipe = series.recipe;
    tensor.columnwise = series.columnwise;
  }
  return tensors[place->second];
}

void QuantisedCollector::add(const QuantisedSeries& series) {
  QuantisedTensor& tensor = tensor_of(series);
  switch (series.statistic) {
    case QuantisedStatistic::underflows:
      tensor.underflow = shares_of(series, logs_.back().columns, kKeepLimit);
      break;
    case QuantisedStatistic::overflows: {
      const QuantisedUnderflow shares = shares_of(series, logs_.back().columns, kClipLimit);
      tensor.overflow = shares.largest;
      tensor.clips = shares.lasts(kClipLimit);
      break;
    }
    case QuantisedStatistic::scale_inv_min: tensor.scale_inv_least = least_of(series); break;
    case QuantisedStatistic::scale_inv_max:
      tensor.scale_inv_most = largest_of(series.values, as_is);
      break;
    case QuantisedStatistic::mse:
      tensor.mse_largest = largest_of(series.values, as_is);
      tensor.mse_last = as_is(series.values.back());
      break;
  }
}

std::vector<QuantisedLog> QuantisedCollector::finish() && {
  for (QuantisedLog& log : logs_) {
    mark_judged(log.tensors);
    log.layers = layers_of(log.tensors, [](const QuantisedTensor& t) { return t.judged; });
    log.recipes = recipes_of(log.tensors);
  }
  return std::move(logs_);
}

}  // namespace halfscope::analyzers::formats
