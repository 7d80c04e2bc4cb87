// SPDX-License-Identifier: Apache-2.0
// Codes and stored scales: their values, their bytes.
#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "halfscope/array/environment.hpp"
#include "halfscope/block/quantise.hpp"

namespace halfscope::block {
namespace {

void check_dequantise(const Recipe& recipe, const Quantised& in, std::size_t rows,
                      std::size_t columns, bool by_columns) {
  const Grid grid = grid_of(recipe, rows, columns, by_columns);
  const std::size_t lines = by_columns ? columns : rows, second = in.second.size();
  if (in.codes.size() == rows * columns && in.scale_rows == grid.rows &&
      in.scale_columns == grid.columns && in.scales.size() == grid.rows * grid.columns &&
      (second <= 1 || second == lines)) {
    return;
  }
  const auto extent = [](std::size_t down, std::size_t across) {
    return std::to_string(down) + " x " + std::to_string(across);
  };
  throw std::invalid_argument(
      "recipe " + std::string(recipe.name) + ": found " + std::to_string(in.codes.size()) +
      " codes, " + std::to_string(in.scales.size()) + " scales for " +
      extent(in.scale_rows, in.scale_columns) + " blocks and " + std::to_string(second) +
      " second scales; a tensor of " + extent(rows, columns) + " has " +
      std::to_string(rows * columns) + " codes, " + extent(grid.rows, grid.columns) +
      " scales and 0, 1 or " + std::to_string(lines) + " second scales");
}

}  // namespace

float scale_value(ScaleFormat format, std::uint32_t stored) {
  switch (format) {
    case ScaleFormat::none: return 1;
    case ScaleFormat::e4m3: return steps::e4m3_value(stored);
    case ScaleFormat::e8m0: return e8m0_to_float(static_cast<std::uint8_t>(stored));
    case ScaleFormat::f32: break;
  }
  return steps::float_of(stored);
}

std::vector<std::byte> packed_scales(ScaleFormat format, std::span<const std::uint32_t> scales) {
  const std::size_t width = scale_width(format);
  std::vector<std::byte> out(scales.size() * width);
  for (std::size_t i = 0; i < scales.size(); ++i) {
    std::memcpy(out.data() + i * width, &scales[i], width);  // little-endian
  }
  return out;
}

std::vector<std::uint32_t> unpacked_scales(ScaleFormat format, std::span<const std::byte> bytes) {
  const std::size_t width = scale_width(format);
  std::vector<std::uint32_t> out(bytes.size() / width);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::memcpy(&out[i], bytes.data() + i * width, width);  // little-endian
  }
  return out;
}

std::vector<float> dequantise(const Recipe& recipe, const Quantised& in, std::size_t rows,
                              std::size_t columns, bool by_columns) {
  check_dequantise(recipe, in, rows, columns, by_columns);
  Shape block = recipe.block;
  if (by_columns) std::swap(block.rows, block.columns);
  const FloatEnvironment environment(RoundingControl::nearest);
  std::array<float, 256> values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = decode(recipe.element, static_cast<std::uint8_t>(i));
  }
  std::vector<float> scales(in.scales.size());
  std::ranges::transform(in.scales, scales.begin(),
                         [&](std::uint32_t stored) { return scale_value(recipe.scale, stored); });
  std::vector<float> out(in.codes.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t scale_row = block.rows == 0 ? 0 : r / block.rows;
      const std::size_t at =
          scale_row * in.scale_columns + (block.columns == 0 ? 0 : c / block.columns);
      const float scale = scales.empty() ? 1 : scales[at];
      const std::size_t line = in.second.size() == 1 ? 0 : by_columns ? c : r;
      const float second = in.second.empty() ? 1 : in.second[line];
      out[r * columns + c] = values[in.codes[r * columns + c]] * scale * second;
    }
  }
  return out;
}

}  // namespace halfscope::block
