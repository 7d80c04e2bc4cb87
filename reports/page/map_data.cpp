// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "halfscope/log/error.hpp"
#include "reports/answer/quantised.hpp"
#include "reports/page/page_data.hpp"

namespace halfscope::reports::page {

using analyzers::formats::kUnderflowLimits;
using analyzers::formats::QuantisedColumn;
using analyzers::formats::QuantisedLog;
using analyzers::formats::QuantisedTensor;
using analyzers::ranks::RankComparison;
using analyzers::ranks::RankMap;
using analyzers::ranks::RankStudy;
using analyzers::ranks::RankValues;
using json = nlohmann::ordered_json;

namespace {

/// Largest number of bars in the strip; more would be narrower than two pixels.
constexpr std::size_t kBars = 128;
/// Largest number of points; the table has the other ranks.
constexpr std::size_t kPoints = 200;

bool is_drawn(const RankComparison& all) { return all.differ() && std::isfinite(all.peak_limit); }

std::string ranks_text(std::uint64_t first, std::uint64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
}

/// Returns the left edge of a rank's bar, which is centred at its number.
double left_of(std::uint64_t rank) { return static_cast<double>(rank) - 0.5; }

/// Returns a rank's position: its typical deviation if it differs at most steps, else its largest.
double place_of(const RankValues& rank) {
  const double middle = rank.middle.value_or(0), peak = rank.peak.value_or(0);
  if (rank.departs && (middle < 0 || !rank.peaks)) return middle;
  return peak;
}

/// The ends of the strip. Values that are not finite are drawn there.
struct Ends {
  double least = 0, most = 0;
  double in(double place) const { return std::clamp(place, least, most); }
};

Ends ends_of(const RankComparison& all) {
  Ends ends{-1, 1.25 * all.peak_limit};
  for (const RankValues& rank : all.ranks) {
    const double place = place_of(rank);
    if (!std::isfinite(place)) continue;
    ends.least = std::min(ends.least, place);
    ends.most = std::max(ends.most, place);
  }
  for (const RankValues& rank : all.ranks) {
    if (place_of(rank) == -HUGE_VAL) ends.least = std::min(ends.least, -2 * all.middle_limit);
    const bool beyond = place_of(rank) == HUGE_VAL || rank.overflows;
    if (beyond) ends.most = std::max(ends.most, 2 * all.peak_limit);
  }
  return ends;
}

std::string place_text(const RankValues& rank) {
  if (rank.is_nonfinite) return rank.nonfinite->nan ? "NaN" : "infinite";
  if (rank.overflows) return fmt::format("not finite at {} steps", rank.nonfinite_steps);
  const double place = place_of(rank);
  return std::isinf(place) ? "zero" : fmt::format("{:+.2f}", place);
}

/// Returns a rank's label: "317", "317: NaN".
std::string label_of(const RankValues& rank) {
  const std::string number = std::to_string(rank.rank);
  if (rank.is_nonfinite) return number + ": " + place_text(rank);
  return rank.overflows ? number + ": not finite" : number;
}

/// Returns the indices in `ranks` of the ranks to label: the worst whose labels do not overlap.
std::set<std::size_t> labelled(const RankComparison& all) {
  constexpr double kApart = 1.0 / 7;  // relative to the width: a label on a phone
  const double width = static_cast<double>(all.ranks.back().rank - all.ranks.front().rank + 1);
  std::set<std::size_t> chosen;
  const auto number = [&](std::size_t i) { return static_cast<double>(all.ranks[i].rank); };
  for (const std::size_t i : all.worst) {
    const bool overlaps = std::ranges::any_of(chosen, [&](std::size_t other) {
      return std::abs(number(i) - number(other)) < kApart * width;
    });
    if (!overlaps) chosen.insert(i);
  }
  return chosen;
}

/// Adds rows for the ranks that do not differ: kind, first, end (ranks), low, high, ranks, place
/// (as text), label.
void add_bars(const RankComparison& all, const Ends& ends, json& out) {
  const double thin = 0.006 * (ends.most - ends.least);  // half the height of the thinnest bar
  const std::size_t each = (all.ranks.size() + kBars - 1) / kBars;
  for (std::size_t i = 0; i < all.ranks.size(); i += each) {
    const std::size_t end = std::min(i + each, all.ranks.size());
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (std::size_t k = i; k < end; ++k) {
      if (all.ranks[k].differs()) continue;
      low = std::min(low, ends.in(place_of(all.ranks[k])));
      high = std::max(high, ends.in(place_of(all.ranks[k])));
    }
    if (low > high) continue;
    const std::uint64_t first = all.ranks[i].rank, last = all.ranks[end - 1].rank;
    out.push_back(
        {"bar", left_of(first), left_of(last + 1), low - thin, high + thin, ranks_text(first, last),
         first == last ? fmt::format("{:+.2f}", low) : fmt::format("{:+.2f} to {:+.2f}", low, high),
         ""});
  }
}

/// Returns the rows of the strip: bars, the ranks that differ, and the limits.
json strip_rows(const RankComparison& all) {
  json out = json::array();
  const Ends ends = ends_of(all);
  add_bars(all, ends, out);
  const std::set<std::size_t> names = labelled(all);
  for (std::size_t i = 0; i < std::min(all.worst.size(), kPoints); ++i) {
    const RankValues& rank = all.ranks[all.worst[i]];
    const std::string number = fmt::format("{}", rank.rank);
    const double at = ends.in(rank.is_nonfinite || rank.overflows ? HUGE_VAL : place_of(rank));
    out.push_back({"rank", rank.rank, rank.rank, at, at, number, place_text(rank),
                   names.contains(all.worst[i]) ? label_of(rank) : ""});
  }
  const auto put_limit = [&](double limit) {
    out.push_back({"limit", left_of(all.ranks.front().rank), left_of(all.ranks.back().rank + 1),
                   limit, limit, "", "", ""});
  };
  put_limit(all.peak_limit);
  if (ends.least < -all.middle_limit) put_limit(-all.middle_limit);
  return out;
}

/// Bounds of the classes in units of RankComparison::peak_limit. Deviations above 1 are
/// significant, however many ranks a row has.
constexpr std::array kClasses = {0.5, 1.0, 1.5, 2.0};

json distance_classes() {
  return {"below half the limit", "half to the limit", "1 to 1.5 limits", "1.5 to 2", "2 and more"};
}

std::size_t distance_class(float limits) {
  return static_cast<std::size_t>(
      std::ranges::count_if(kClasses, [&](double limit) { return std::abs(limits) >= limit; }));
}

/// Adds [first, end (ranks), class, step, last, end_step, ranks, binades] for each run of one class
/// in a row of the map.
void add_runs(const RankComparison& all, const RankMap::Row& row, json& out) {
  const json classes = distance_classes();
  const auto its = [&](float cell) {
    return distance_class(cell / static_cast<float>(all.peak_limit));
  };
  for (std::size_t i = 0; i < row.cells.size();) {
    float most = row.cells[i];
    if (std::isnan(most)) {
      ++i;
      continue;
    }
    std::size_t next = i + 1;
    for (; next < row.cells.size() && its(row.cells[next]) == its(most); ++next) {
      if (std::isnan(row.cells[next])) break;
      if (std::abs(row.cells[next]) > std::abs(most)) most = row.cells[next];
    }
    const std::int64_t end =
        next < all.map.steps.size() ? all.map.steps[next] : all.map.last_step + 1;
    out.push_back(
        {left_of(row.first), left_of(row.last + 1), classes[its(most)], all.map.steps[i], end - 1,
         end, ranks_text(row.first, row.last),
         std::isinf(most) ? (most > 0 ? "not finite" : "zero") : fmt::format("{:+.2f}", most)});
    i = next;
  }
}

json map_rows(const RankComparison& all) {
  json out = json::array();
  for (const RankMap::Row& row : all.map.rows) add_runs(all, row, out);
  return out;
}

/// Returns the map's height in pixels. With few ranks, each row has a fixed height.
std::size_t map_height(const analyzers::Findings& found) {
  constexpr std::size_t kFrame = 90, kRow = 14, kMost = 330;
  std::size_t rows = 1;
  for (const RankStudy& study : found.ranks) {
    for (const RankComparison& all : study.compared) rows = std::max(rows, all.map.rows.size());
  }
  return std::min(kFrame + kRow * rows, kMost);
}

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

std::vector<log::Role> drawn_ranks(const analyzers::Findings& found) {
  std::vector<log::Role> roles;
  for (const RankStudy& study : found.ranks) {
    for (const RankComparison& all : study.compared) {
      if (is_drawn(all) && std::ranges::count(roles, all.role) == 0) roles.push_back(all.role);
    }
  }
  return roles;
}

void put_rank_charts(const analyzers::Findings& found, json& to) {
  if (drawn_ranks(found).empty()) return;
  to["rank-strip"] = own_chart({"kind", "first", "end", "low", "high", "ranks", "place", "label"});
  to["rank-map"] =
      own_chart({"first", "end", "far", "step", "last", "end_step", "ranks", "binades"},
                {{"far-classes", distance_classes()}, {"map-height", map_height(found)}});
  const std::vector<std::string> names = found.analysis.names();
  for (const RankStudy& study : found.ranks) {
    const std::string log = std::to_string(std::ranges::find(names, study.log) - names.begin());
    for (const RankComparison& all : study.compared) {
      if (!is_drawn(all)) continue;
      const std::string role(log::name_of(all.role));
      to["rank-strip"]["rows"][log][role] = strip_rows(all);
      to["rank-map"]["rows"][log][role] = map_rows(all);
    }
  }
}

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
