// SPDX-License-Identifier: Apache-2.0
// Reduces a matrix of ranks by steps to a size that can be displayed.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/ranks/rank_comparison.hpp"

namespace halfscope::analyzers::ranks {

/// Most rows and columns of a map.
inline constexpr std::size_t kMapRows = 64, kMapColumns = 100;

/// Binades above the median rank: ranks by columns of steps; NaN if there is no value.
struct Matrix {
  ColumnKeys keys;
  std::vector<std::vector<float>> rows;
};

/// Returns the map. A cell for several values has the one farthest from the median rank.
RankMap map_of(const RankComparison& all, const Matrix& matrix);

}  // namespace halfscope::analyzers::ranks
