// SPDX-License-Identifier: Apache-2.0
#include "analyzers/ranks/rank_map.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfscope::analyzers::ranks {
namespace {

/// Returns the number of items per group such that there are at most `most` groups.
std::size_t share_of(std::size_t count, std::size_t most) { return (count + most - 1) / most; }

void take_farther(float& cell, float value) {
  if (std::isnan(value)) return;
  if (std::isnan(cell) || std::abs(value) > std::abs(cell)) cell = value;
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

}  // namespace halfscope::analyzers::ranks
