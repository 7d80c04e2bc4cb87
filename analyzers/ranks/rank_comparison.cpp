// SPDX-License-Identifier: Apache-2.0
#include "analyzers/ranks/rank_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace halfscope::analyzers::ranks {

namespace {

/// Returns the number of items per group such that there are at most `most` groups.
std::size_t share_of(std::size_t count, std::size_t most) { return (count + most - 1) / most; }

void take_farther(float& cell, float value) {
  if (std::isnan(value)) return;
  if (std::isnan(cell) || std::abs(value) > std::abs(cell)) cell = value;
}

constexpr double kDoubleInfinity = std::numeric_limits<double>::infinity();
constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

/// Probability that the median over few ranks is lower than assumed.
constexpr double kLowMedian = 0.01;

/// Returns the lower median, or nothing if there are no values. Reorders `values`.
template <class T>
std::optional<T> median(std::vector<T>& values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Returns the binades above the median, or kNone if the median is zero or a value is missing.
float above(float value, float median) {
  if (std::isnan(value) || median == -std::numeric_limits<float>::infinity()) return kNone;
  return std::isfinite(median) ? value - median : 0.0F;
}

/// Groups ranks that hold the same tensors, so that each stage of a pipeline is compared only with
/// itself. A rank without names joins the first group.
std::vector<std::vector<std::size_t>> groups_of(const std::vector<RankRow>& rows) {
  std::map<std::uint64_t, std::vector<std::size_t>> groups;
  const auto named = std::ranges::find_if(rows, [](const RankRow& row) { return row.names != 0; });
  const std::uint64_t first = named == rows.end() ? 0 : named->names;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    groups[rows[i].names == 0 ? first : rows[i].names].push_back(i);
  }
  std::vector<std::vector<std::size_t>> all;
  for (auto& [names, group] : groups) all.push_back(std::move(group));
  return all;
}

/// Returns log2 of the largest magnitudes, as a matrix of ranks by columns.
Matrix matrix_of(const std::vector<RankRow>& rows) {
  Matrix all;
  for (const RankRow& row : rows) {
    if (*row.keys == all.keys) continue;
    ColumnKeys merged;
    std::ranges::set_union(all.keys, *row.keys, std::back_inserter(merged));
    all.keys = std::move(merged);
  }
  for (const RankRow& row : rows) {
    std::vector<float>& cells = all.rows.emplace_back(all.keys.size(), kNone);
    std::size_t column = 0;
    for (std::size_t i = 0; i < row.keys->size(); ++i) {
      while (all.keys[column] != (*row.keys)[i]) ++column;
      cells[column] = row.log2[i];
    }
  }
  return all;
}

/// Converts each column to binades above the median of a group.
void take_medians(Matrix& all, const std::vector<std::size_t>& group) {
  std::vector<float> there;
  for (std::size_t column = 0; column < all.keys.size(); ++column) {
    there.clear();
    for (const std::size_t i : group) {
      if (!std::isnan(all.rows[i][column])) there.push_back(all.rows[i][column]);
    }
    const bool alone = there.size() < 2;
    const float middle = alone ? kNone : *median(there);
    for (const std::size_t i : group) {
      float& cell = all.rows[i][column];
      cell = alone ? kNone : above(cell, middle);
    }
  }
}

/// Sets the rank's peak and median. Returns its largest finite distance at one step.
std::optional<double> place(RankValues& rank, const Matrix& all, const std::vector<float>& cells) {
  std::vector<float> there;
  std::optional<double> farthest;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const float cell = cells[column];
    if (std::isnan(cell)) continue;
    there.push_back(cell);
    if (std::isfinite(cell)) farthest = std::max<double>(farthest.value_or(0), std::abs(cell));
    if (rank.peak && *rank.peak >= cell) continue;
    rank.peak = cell;
    rank.peak_step = all.keys[column];
  }
  if (const auto middle = median(there)) rank.middle = *middle;
  return farthest;
}

/// Returns the distance from which on a rank's number differs from those of the others.
double spread_limit(std::vector<double>& distances) {
  return std::max(kLeastBinades, kSpreads * median(distances).value_or(0));
}

/// Returns the first column from which on at least half of the cells are beyond the limit; else the
/// first column that is.
std::optional<std::int64_t> since(const Matrix& all, const std::vector<float>& cells,
                                  const std::function<bool(float)>& is_beyond) {
  std::optional<std::int64_t> first, lasting;
  std::ptrdiff_t beyond = 0, finite = 0;
  for (std::size_t column = cells.size(); column-- > 0;) {
    if (std::isnan(cells[column])) continue;
    ++finite;
    if (!is_beyond(cells[column])) continue;
    ++beyond;
    first = all.keys[column];
    if (2 * beyond >= finite) lasting = first;
  }
  return lasting ? lasting : first;
}

void add_since(RankComparison& all, const Matrix& matrix) {
  for (std::size_t i = 0; i < all.ranks.size(); ++i) {
    RankValues& rank = all.ranks[i];
    if (!rank.peaks && !rank.departs) continue;
    const bool low = !rank.peaks && *rank.middle < 0;
    const double limit = rank.peaks ? all.peak_limit : all.middle_limit;
    rank.since =
        since(matrix, matrix.rows[i], [=](float cell) { return (low ? -cell : cell) > limit; });
    if (rank.since) *rank.since *= all.stride;
  }
}

void judge_magnitudes(RankComparison& all, const Matrix& matrix) {
  std::vector<double> farthest, middles;
  std::vector<std::size_t> steps;
  for (std::size_t i = 0; i < all.ranks.size(); ++i) {
    RankValues& rank = all.ranks[i];
    if (const auto far = place(rank, matrix, matrix.rows[i])) farthest.push_back(*far);
    if (rank.middle) middles.push_back(std::abs(*rank.middle));
    steps.push_back(static_cast<std::size_t>(
        std::ranges::count_if(matrix.rows[i], [](float cell) { return !std::isnan(cell); })));
    rank.peak_step *= all.stride;
  }
  const std::size_t draws = median(steps).value_or(0);
  if (farthest.size() < 2 || (farthest.size() - 1) * draws < kLeastValues) return;
  all.peak_limit =
      std::max(kLeastBinades, chance_limit(*median(farthest), all.ranks.size(), draws));
  // The median of n steps varies by chance too, even if few ranks show no spread of it.
  all.middle_limit =
      std::max(spread_limit(middles), all.peak_limit / std::sqrt(static_cast<double>(draws)));
  for (RankValues& rank : all.ranks) {
    rank.peaks = rank.peak && *rank.peak > all.peak_limit;
    rank.departs = rank.middle && std::abs(*rank.middle) > all.middle_limit;
  }
  add_since(all, matrix);
}

double shown_share(double share) { return std::log2(std::max(share, kLeastUnderflow)); }

void judge_underflow(RankComparison& all) {
  std::vector<double> shares, distances;
  for (const RankValues& rank : all.ranks) {
    if (const auto share = rank.underflow()) shares.push_back(*share);
  }
  all.median_underflow = median(shares);
  if (shares.size() < 2 || !std::isfinite(all.peak_limit)) return;
  for (const double share : shares) {
    distances.push_back(std::abs(shown_share(share) - shown_share(*all.median_underflow)));
  }
  all.underflow_limit = spread_limit(distances);
  for (RankValues& rank : all.ranks) {
    const auto share = rank.underflow();
    rank.underflows =
        share && shown_share(*share) - shown_share(*all.median_underflow) > all.underflow_limit;
  }
}

/// Marks the ranks that are first with an infinity or NaN, if most ranks have none at that step,
/// and ranks that have some where the median rank has none.
void judge_nonfinite(RankComparison& all) {
  std::optional<std::int64_t> first;
  for (const RankValues& rank : all.ranks) {
    if (rank.nonfinite)
      first = std::min(first.value_or(rank.nonfinite->step), rank.nonfinite->step);
  }
  if (!first) return;
  const auto is_first = [&](const RankValues& rank) {
    return rank.nonfinite && rank.nonfinite->step == *first;
  };
  const bool few = 2 * std::ranges::count_if(all.ranks, is_first) < std::ssize(all.ranks);
  for (RankValues& rank : all.ranks) {
    const bool alone = rank.peaks && *rank.peak == kDoubleInfinity;
    rank.is_nonfinite = (few && is_first(rank)) || (rank.nonfinite && alone);
    rank.peaks = rank.peaks && !alone;
  }
}

/// Marks the ranks with infinities or NaN at many more steps than the median rank.
void judge_overflows(RankComparison& all) {
  std::vector<std::uint64_t> steps;
  for (const RankValues& rank : all.ranks) steps.push_back(rank.nonfinite_steps);
  all.median_nonfinite_steps = *median(steps);
  for (RankValues& rank : all.ranks) {
    if (rank.nonfinite_steps < all.median_nonfinite_steps + kOften) continue;
    const std::uint64_t more = rank.nonfinite_steps - all.median_nonfinite_steps;
    rank.overflows = static_cast<double>(more) > kOftenShare * static_cast<double>(rank.steps);
  }
}

void add_skew(RankComparison& all) {
  std::vector<double> largest;
  for (const RankValues& rank : all.ranks) {
    if (rank.max_abs) largest.push_back(*rank.max_abs);
  }
  all.median_max_abs = median(largest);
  if (all.median_max_abs.value_or(0) <= 0) return;
  for (RankValues& rank : all.ranks) {
    if (rank.max_abs.value_or(0) > 0) rank.skew = std::log2(*rank.max_abs / *all.median_max_abs);
  }
}

/// Returns how far beyond its limits a rank is, in binades.
double excess(const RankComparison& all, const RankValues& rank) {
  double most = 0;
  if (rank.peaks) most = std::max(most, *rank.peak - all.peak_limit);
  if (rank.departs) most = std::max(most, std::abs(*rank.middle) - all.middle_limit);
  if (rank.underflows) {
    most = std::max(most, shown_share(*rank.underflow()) - shown_share(*all.median_underflow) -
                              all.underflow_limit);
  }
  return most;
}

void sort_worst(RankComparison& all) {
  for (std::size_t i = 0; i < all.ranks.size(); ++i) {
    if (all.ranks[i].differs()) all.worst.push_back(i);
  }
  const auto order = [&](std::size_t i) {
    const RankValues& rank = all.ranks[i];
    const auto first = rank.is_nonfinite ? rank.nonfinite->step : 0;
    return std::tuple(!rank.is_nonfinite, first, !rank.overflows, -excess(all, rank), rank.rank);
  };
  std::ranges::sort(all.worst, {}, order);
}

}  // namespace

RankMap map_of(const RankComparison& all, const Matrix& matrix) {
  RankMap map;
  const std::size_t ranks = share_of(all.ranks.size(), kMapRows);
  const std::size_t columns = share_of(matrix.keys.size(), kMapColumns);
  for (std::size_t i = 0; i < matrix.keys.size(); i += columns) {
    map.steps.push_back(matrix.keys[i] * all.stride);
  }
  if (!matrix.keys.empty()) map.last_step = matrix.keys.back() * all.stride + all.stride - 1;
  for (std::size_t i = 0; i < all.ranks.size(); ++i) {
    if (i % ranks == 0) {
      map.rows.push_back(
          {all.ranks[i].rank, all.ranks[i].rank,
           std::vector<float>(map.steps.size(), std::numeric_limits<float>::quiet_NaN())});
    }
    RankMap::Row& row = map.rows.back();
    row.last = all.ranks[i].rank;
    for (std::size_t column = 0; column < matrix.keys.size(); ++column) {
      take_farther(row.cells[column / columns], matrix.rows[i][column]);
    }
  }
  return map;
}

double chance_limit(double typical, std::size_t ranks, std::size_t draws) {
  const auto n = static_cast<double>(draws), w = static_cast<double>(ranks);
  // For values with the tail exp(-x): of_one is exceeded by the largest of n in half of the ranks,
  // or in more, since few ranks may have a low median by chance; of_all is exceeded by the largest
  // of all in kFalseAlarms of the runs.
  const double below = 0.5 * std::pow(kLowMedian, 2 / w);
  const double of_one = -std::log(-std::expm1(std::log(below) / n));
  const double of_all = std::log(w * n / kFalseAlarms);
  return typical * of_all / of_one;
}

std::optional<double> RankValues::underflow() const {
  if (nonzero == 0) return std::nullopt;
  return static_cast<double>(flushed) / static_cast<double>(nonzero);
}

bool RankStudy::differ() const { return std::ranges::any_of(compared, &RankComparison::differ); }

bool RankStudy::judged() const { return std::ranges::any_of(compared, &RankComparison::judged); }

std::set<std::uint64_t> RankStudy::differing() const {
  std::set<std::uint64_t> found;
  for (const RankComparison& all : compared) {
    for (const std::size_t i : all.worst) found.insert(all.ranks[i].rank);
  }
  return found;
}

const RankComparison* RankStudy::worst() const {
  const RankComparison* most = nullptr;
  const auto order = [](const RankComparison& all) {
    const RankValues& rank = all.ranks[all.worst.front()];
    return std::tuple(!rank.is_nonfinite, rank.is_nonfinite ? rank.nonfinite->step : 0,
                      !rank.overflows, -excess(all, rank));
  };
  for (const RankComparison& all : compared) {
    if (all.differ() && (most == nullptr || order(all) < order(*most))) most = &all;
  }
  return most;
}

std::optional<RankComparison> compare(log::Role role, std::vector<RankRow>&& rows,
                                      std::int64_t stride, bool parts) {
  if (rows.size() < 2) return std::nullopt;
  RankComparison all;
  all.role = role;
  all.stride = stride;
  all.parts = parts;
  all.peak_limit = all.middle_limit = all.underflow_limit = kDoubleInfinity;
  for (const RankRow& row : rows) all.ranks.push_back(row.values);
  Matrix matrix = matrix_of(rows);
  for (const auto& group : groups_of(rows)) take_medians(matrix, group);
  rows.clear();
  if (!parts) judge_magnitudes(all, matrix);
  if (!parts) judge_underflow(all);
  judge_nonfinite(all);
  judge_overflows(all);
  add_skew(all);
  sort_worst(all);
  if (all.differ()) all.map = map_of(all, matrix);
  return all;
}

}  // namespace halfscope::analyzers::ranks
