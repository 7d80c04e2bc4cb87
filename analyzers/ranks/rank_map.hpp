// SPDX-License-Identifier: Apache-2.0
// Ranks by steps, made small enough to be seen.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzers/ranks/rank_comparison.hpp"

namespace halfscope::analyzers::ranks {

/// Most rows and columns of a map.
inline constexpr std::size_t kMapRows = 64, kMapColumns = 100;

/// Ranks by columns of steps: binades above the median rank, NaN where there is no value.
struct Matrix {
  ColumnKeys keys;
  std::vector<std::vector<float>> rows;
};

/// Each cell has the value that is farthest from the median rank of several.
RankMap map_of(const RankComparison& all, const Matrix& matrix);

}  // namespace halfscope::analyzers::ranks
