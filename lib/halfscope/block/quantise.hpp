// SPDX-License-Identifier: Apache-2.0
// The quantiser of all recipes. The scalar functions of element.hpp and scale.hpp define its bits;
// vector code gives the same for the common recipes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "halfscope/block/recipe.hpp"
#include "halfscope/block/scale.hpp"

namespace halfscope::block {

/// A tensor in binary32. Its rows are all its dimensions but the last.
struct Matrix {
  std::span<const float> values;  ///< rows * columns numbers, row after row
  std::size_t rows = 1, columns = 0;
};

struct QuantiseOptions {
  bool by_columns = false;  ///< blocks run down the columns: those of the transposed tensor
  /// For ElementRounding::random: the value in row i and column j draws word i * columns + j of
  /// this seed, of number/random.hpp.
  std::uint64_t seed = 0;
  /// For SecondScale::history, and only there: the largest magnitude of earlier steps.
  std::optional<double> history = {};
  /// The type that the values had before they were converted to binary32. Its largest finite number
  /// limits FP8's scales, and sums of the Hadamard transform are rounded to it.
  Format type = kBinary32;
  /// If not null, receives the values that are rounded: each times, or divided by, its factor.
  std::vector<float>* scaled = nullptr;
  int threads = 0;  ///< 0: one per core. The results are the same for any number

  /// Returns the largest finite number of `type`.
  float limit() const { return static_cast<float>(to_double(type, type.largest_finite())); }
};

/// A quantised tensor.
struct Quantised {
  std::vector<std::uint8_t> codes;  ///< one code a value, in the order of the values
  /// One stored scale a block, row after row of blocks: a code of the recipe's ScaleFormat, or an
  /// encoding of binary32. Empty if the recipe has no scales.
  std::vector<std::uint32_t> scales;
  std::size_t scale_rows = 0, scale_columns = 0;  ///< grid_of()
  /// Second scales, which multiply code and block scale: one for the tensor, one a row (a column if
  /// blocks run down the columns), or none.
  std::vector<float> second;
};

/// Numbers of scales of a tensor, down and across.
struct Grid {
  std::size_t rows = 0, columns = 0;
};
Grid grid_of(const Recipe& recipe, std::size_t rows, std::size_t columns, bool by_columns);

/// Returns the number of second scales of a tensor: Quantised::second.
std::size_t second_count(const Recipe& recipe, std::size_t rows, std::size_t columns,
                         bool by_columns);

/// Throws std::invalid_argument as quantise() does for a tensor of this size.
void check_quantise(const Recipe& recipe, std::size_t rows, std::size_t columns,
                    const QuantiseOptions& options);

/// Quantises a tensor. The caller's floating-point environment does not matter. Throws
/// std::invalid_argument if the recipe does not allow the size, if the sizes do not fit, or if
/// `history` is missing, negative or not finite for a recipe that needs it, or given for another.
Quantised quantise(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options = {});

/// The same into `out`, whose memory is used again.
void quantise(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options,
              Quantised& out);

/// The same by scalar code alone, one value at a time, on one thread.
Quantised quantise_scalar(const Recipe& recipe, const Matrix& in,
                          const QuantiseOptions& options = {});

/// Returns the values of codes: code times block scale, times the second scale, each product
/// rounded to binary32. Throws std::invalid_argument if the numbers of codes, of scales or of
/// second scales are not those of a tensor of this size; there may be no second scales.
std::vector<float> dequantise(const Recipe& recipe, const Quantised& in, std::size_t rows,
                              std::size_t columns, bool by_columns = false);

/// Returns the value of a stored scale.
float scale_value(ScaleFormat format, std::uint32_t stored);

/// Returns the bytes of a scale in a file or an array: 4 for binary32, else 1.
constexpr std::size_t scale_width(ScaleFormat format) { return format == ScaleFormat::f32 ? 4 : 1; }

/// Returns stored scales as bytes, scale_width() each, little-endian.
std::vector<std::byte> packed_scales(ScaleFormat format, std::span<const std::uint32_t> scales);

/// Returns the stored scales that packed_scales() made bytes of.
std::vector<std::uint32_t> unpacked_scales(ScaleFormat format, std::span<const std::byte> bytes);

/// Returns the transposed matrix. values: rows * columns, row after row.
template <class T>
std::vector<T> transposed(std::span<const T> values, std::size_t rows, std::size_t columns) {
  std::vector<T> out(values.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) out[c * rows + r] = values[r * columns + c];
  }
  return out;
}

}  // namespace halfscope::block
