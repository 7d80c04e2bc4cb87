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

/// The values of a tensor, row after row.
struct Matrix {
  std::span<const float> values;  ///< rows * columns
  std::size_t rows = 1, columns = 0;
};

struct QuantiseOptions {
  bool by_columns = false;  ///< blocks run down the columns: those of the transposed tensor
  /// For ElementRounding::random: the value in row i and column j draws word i * columns + j of
  /// this seed, of number/random.hpp.
  std::uint64_t seed = 0;
  std::optional<float> history =
      {};  ///< for SecondScale::history: the largest magnitude seen before
  /// The largest finite number of the type that the values were converted from: FP8's limit.
  float limit = kFloatMax;
  /// If not null, receives the values that are rounded: each times, or divided by, its factor.
  std::vector<float>* scaled = nullptr;
  int threads = 0;  ///< 0: one per core. The results are the same for any number
};

struct Quantised {
  std::vector<std::uint8_t> codes;    ///< one per value, in its place
  std::vector<std::uint32_t> scales;  ///< one per block: codes, or encodings of binary32
  std::size_t scale_rows = 0, scale_columns = 0;
  std::vector<float> second;  ///< SecondFactors::decode: one, one a row, or none
};

/// Numbers of scales of a tensor, down and across.
struct Grid {
  std::size_t rows = 0, columns = 0;
};
Grid grid_of(const Recipe& recipe, std::size_t rows, std::size_t columns, bool by_columns);

/// Throws std::invalid_argument as quantise() does for a tensor of this size.
void check_quantise(const Recipe& recipe, std::size_t rows, std::size_t columns,
                    const QuantiseOptions& options);

/// Quantises a tensor. The caller's floating-point environment does not matter. Throws
/// std::invalid_argument if the recipe does not allow the size, if the sizes do not fit, or if
/// `history` is missing, negative or not finite for a recipe that needs it.
Quantised quantise(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options = {});

/// The same into `out`, whose memory is used again.
void quantise(const Recipe& recipe, const Matrix& in, const QuantiseOptions& options,
              Quantised& out);

/// The same by scalar code alone, one value at a time, on one thread.
Quantised quantise_scalar(const Recipe& recipe, const Matrix& in,
                          const QuantiseOptions& options = {});

/// Returns the values of codes: code times block scale, times the second scale, each product
/// rounded to binary32. Throws std::invalid_argument if sizes do not fit.
std::vector<float> dequantise(const Recipe& recipe, const Quantised& in, std::size_t rows,
                              std::size_t columns, bool by_columns = false);

/// Returns the value of a stored scale.
float scale_value(ScaleFormat format, std::uint32_t stored);

}  // namespace halfscope::block
