// SPDX-License-Identifier: Apache-2.0
// Four over Six (J. Cook et al., arXiv 2512.02010), in Transformer Engine's order of operations: a
// block is quantised with its largest element at 6 and at 4, which leaves a smaller gap below it,
// and the one with the smaller error stays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "halfscope/block/scale.hpp"

namespace halfscope::block {

/// Returns the error of a row of a block: of each value code * scale * largest / range - x, the
/// magnitude or the square, added in order.
HALFSCOPE_HD constexpr float row_error(const Recipe& recipe, const SecondFactors& second,
                                       const BlockFactor& scale, const float* x, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint8_t code = encode(recipe.element, x[i] * scale.factor);
    const float value = decode(recipe.element, code) * steps::e4m3_value(scale.stored) *
                        second.largest / nvfp4_range(recipe.formula);
    const float error = value - x[i];
    const bool square = recipe.formula == Formula::nvfp4_four_over_six_square;
    sum += square ? error * error : (error < 0 ? -error : error);
  }
  return sum;
}

/// Returns the error of a block of at most 16 rows. Rows are added as a tree, as the threads of a
/// GPU do: row i and row i + 8, then i and i + 4, and so on. Missing rows count as zeros.
HALFSCOPE_HD constexpr float block_error(const Recipe& recipe, const SecondFactors& second,
                                         const BlockFactor& scale, const float* x,
                                         std::size_t stride, std::size_t rows, std::size_t n) {
  float errors[16] = {};
  for (std::size_t r = 0; r < rows; ++r) {
    errors[r] = row_error(recipe, second, scale, x + r * stride, n);
  }
  for (std::size_t half = recipe.block.rows / 2; half > 0; half /= 2) {
    for (std::size_t r = 0; r < half; ++r) errors[r] += errors[r + half];
  }
  return errors[0];
}

/// Returns the scale of a block by any recipe: block_factor()'s, or the one of two with the smaller
/// error if the formula tries two; 6 wins a tie. magnitude, limit: as block_factor() has them.
/// x: the first of `rows` rows of n values, whose starts are `stride` values apart.
HALFSCOPE_HD constexpr BlockFactor best_factor(const Recipe& recipe, const SecondFactors& second,
                                               std::uint32_t magnitude, float limit, const float* x,
                                               std::size_t stride, std::size_t rows,
                                               std::size_t n) {
  if (!tries_two_scales(recipe.formula)) return block_factor(recipe, second, magnitude, limit);
  const float base = steps::float_of(magnitude) / 6 * second.encode;
  const BlockFactor at_4 = steps::nvfp4_factor(base * 1.5F, second);
  const BlockFactor at_6 = steps::nvfp4_factor(base, second);
  const float error_4 = block_error(recipe, second, at_4, x, stride, rows, n);
  const float error_6 = block_error(recipe, second, at_6, x, stride, rows, n);
  return error_4 < error_6 ? at_4 : at_6;
}

}  // namespace halfscope::block
