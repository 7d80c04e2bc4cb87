// SPDX-License-Identifier: Apache-2.0
// The blocks of a tensor that a file stores as codes with scales.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace halfscope::log {

/// Codes are `layers` matrices of `rows` by `columns`, cut into blocks that share a factor; blocks
/// at the edges may be smaller. A value is its code's number times the factor, rounded to binary32.
struct TensorBlocks {
  std::string element, scale;  ///< formats of the codes and of the scales: "E2M1", "E4M3"
  std::uint64_t layers = 1, rows = 1, columns = 1;
  std::uint64_t block_rows = 1, block_columns = 1;
  bool transposed = false;          ///< the values are matrices of `columns` by `rows`
  float largest = 0;                ///< the largest number of a code
  float clipped_above = 0;          ///< `largest` and half its distance from the number before it
  std::vector<float> factors = {};  ///< one for each block, row after row

  std::uint64_t blocks_down() const { return (rows + block_rows - 1) / block_rows; }
  std::uint64_t blocks_across() const { return (columns + block_columns - 1) / block_columns; }
  std::uint64_t count() const { return layers * blocks_down() * blocks_across(); }

  /// Calls visit(code, value) for each element of a block: its index among the codes, and its index
  /// among the values.
  template <typename Visit>
  void for_each_element(std::uint64_t block, const Visit& visit) const {
    const std::uint64_t line = block / blocks_across(), layer = line / blocks_down();
    const std::uint64_t top = line % blocks_down() * block_rows;
    const std::uint64_t left = block % blocks_across() * block_columns;
    const std::uint64_t bottom = std::min(rows, top + block_rows);
    const std::uint64_t right = std::min(columns, left + block_columns);
    for (std::uint64_t r = top; r < bottom; ++r) {
      for (std::uint64_t c = left; c < right; ++c) {
        const std::uint64_t code = (layer * rows + r) * columns + c;
        visit(code, transposed ? (layer * columns + c) * rows + r : code);
      }
    }
  }
};

}  // namespace halfscope::log
