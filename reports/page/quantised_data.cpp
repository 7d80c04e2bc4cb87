// SPDX-License-Identifier: Apache-2.0
#include "reports/page/quantised_data.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "halfscope/log/error.hpp"
#include "reports/answer/quantised_words.hpp"
#include "reports/page/own_chart.hpp"

namespace halfscope::reports::page {

using analyzers::formats::kUnderflowLimits;
using analyzers::formats::QuantisedColumn;
using analyzers::formats::QuantisedLog;
using analyzers::formats::QuantisedTensor;

using json = nlohmann::ordered_json;

namespace {

std::string key_of(const QuantisedTensor& tensor) {
  return fmt::format("{}-{}{}", tensor.tensor, name_of(tensor.recipe),
                     tensor.columnwise ? "-columnwise" : "");
}

/// Returns the index in underflow_classes(): the number of limits that the share reaches.
std::size_t underflow_class(double share) {
  // A printed share is rounded: it may be half a unit of its fourth decimal too small.
  constexpr double kHalfUnit = 0.5e-6;
  return static_cast<std::size_t>(std::ranges::count_if(
      kUnderflowLimits, [share](double limit) { return share + kHalfUnit >= limit; }));
}

/// Returns the names of the classes: "below 0.5 %", "0.5 to 1 %", ..., "4 % and more".
json underflow_classes() {
  json names = json::array();
  for (std::size_t i = 0; i <= kUnderflowLimits.size(); ++i) {
    const bool first = i == 0, last = i == kUnderflowLimits.size();
    names.push_back(first  ? fmt::format("below {:g} %", 100 * kUnderflowLimits[0])
                    : last ? fmt::format("{:g} % and more", 100 * kUnderflowLimits[i - 1])
                           : fmt::format("{:g} to {:g} %", 100 * kUnderflowLimits[i - 1],
                                         100 * kUnderflowLimits[i]));
  }
  return names;
}

/// Adds [layer, class of the share, step, last, end, percent] for each run of columns of one class,
/// so that layers with small losses need few cells. `end` is the first step of the next column.
void add_rows(const QuantisedLog& log, const QuantisedTensor& tensor, const json& classes,
              json& to) {
  const std::vector<QuantisedColumn>& columns = log.columns;
  const auto end_of = [&](std::uint32_t column) {
    if (column + 1 < columns.size()) return columns[column + 1].first_step;
    const std::int64_t last = columns[column].last_step;
    return last == std::numeric_limits<std::int64_t>::max() ? last : last + 1;
  };
  const auto& cells = tensor.underflow->cells;
  const std::string layer = log::printable(tensor.layer);
  for (std::size_t i = 0; i < cells.size();) {
    std::size_t next = i + 1;
    const std::size_t its = underflow_class(cells[i].share);
    double most = cells[i].share;
    while (next < cells.size() && cells[next].column == cells[next - 1].column + 1 &&
           underflow_class(cells[next].share) == its) {
      most = std::max(most, cells[next++].share);
    }
    const std::uint32_t last = cells[next - 1].column;
    to.push_back({layer, classes[its], columns[cells[i].column].first_step, columns[last].last_step,
                  end_of(last), 1e-4 * std::round(1e6 * most)});
    i = next;
  }
}

/// Returns the height of a layer in pixels, so that all layers of a large model fit.
std::size_t row_height(const analyzers::Findings& found) {
  constexpr std::size_t kHeight = 1000, kLeast = 3, kMost = 16;
  std::size_t layers = 1;
  for (const QuantisedLog& log : found.quantised) layers = std::max(layers, log.layers.size());
  return std::clamp(kHeight / layers, kLeast, kMost);
}

}  // namespace

std::vector<QuantisedMap> quantised_maps(const analyzers::Findings& found) {
  std::vector<QuantisedMap> maps;
  for (const QuantisedLog& log : found.quantised) {
    for (const QuantisedTensor& tensor : log.tensors) {
      if (!tensor.underflow) continue;
      auto map = std::ranges::find(maps, key_of(tensor), &QuantisedMap::key);
      if (map == maps.end()) {
        maps.push_back({key_of(tensor), answer::map_title(tensor), 0, false});
        map = maps.end() - 1;
      }
      map->most = std::max(map->most, tensor.underflow->largest.high);
      map->judged = map->judged || tensor.judged;
    }
  }
  std::ranges::stable_sort(maps, [](const QuantisedMap& a, const QuantisedMap& b) {
    return a.judged != b.judged ? a.judged : a.most > b.most;
  });
  return maps;
}

void put_quantised_chart(const analyzers::Findings& found, json& to) {
  if (found.quantised.empty()) return;
  const json classes = underflow_classes();
  to["fp8"] = own_chart({"layer", "share", "step", "last", "end", "percent"},
                        {{"classes", classes}, {"row-height", row_height(found)}});
  const std::vector<std::string> names = found.analysis.names();
  std::set<std::string> drawn;
  for (const QuantisedMap& map : quantised_maps(found)) {
    if (map.drawn()) drawn.insert(map.key);
  }
  for (const QuantisedLog& log : found.quantised) {
    const auto at = std::ranges::find(names, log.log) - names.begin();
    json& rows = to["fp8"]["rows"][std::to_string(at)] = json::object();
    for (const QuantisedTensor& tensor : log.tensors) {
      const std::string key = key_of(tensor);
      if (tensor.underflow && drawn.contains(key)) add_rows(log, tensor, classes, rows[key]);
    }
  }
}

}  // namespace halfscope::reports::page
