// SPDX-License-Identifier: Apache-2.0
// A recipe says how a tensor becomes small elements with scales. It is one row of a table, and the
// one quantiser reads the row. docs/numerics/recipes.md defines each word of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "halfscope/block/element.hpp"

namespace halfscope::block {

/// Rows and columns of the values that share a scale; 0: all of them. The rows of a tensor are all
/// its dimensions but the last.
struct Shape {
  std::uint32_t rows, columns;

  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

enum class ScaleFormat : std::uint8_t { none, e4m3, e8m0, f32 };

/// The values that share a second scale, in binary32. `history`: the only scale is that of a
/// largest magnitude that the caller gives.
enum class SecondScale : std::uint8_t { none, tensor, row, history };

/// The order of operations that leads from the largest magnitude of a block to its stored scale and
/// to the factor of its values. scale.hpp has the operations.
enum class Formula : std::uint8_t {
  none,  ///< values are rounded as they are
  // NVFP4: E4M3 scales below a scale of the tensor
  nvfp4,                       ///< Transformer Engine since 2.12
  nvfp4_two_roundings,         ///< b / 6, then times the tensor's scale: Transformer Engine before
  nvfp4_four_over_six,         ///< 4 or 6 as the block's largest code, by mean absolute error
  nvfp4_four_over_six_square,  ///< the same by the mean square of the errors
  nvfp4_four_over_six_448,     ///< the same with scales up to 448 instead of 256
  nvfp4_torchao,               ///< torchao's nvfp4_quantize
  nvfp4_modelopt,              ///< NVIDIA ModelOpt
  nvfp4_compressed_tensors,    ///< compressed-tensors
  // MX: powers of two
  mx_floor,
  mx_even,
  mx_ceil,
  mx_round_up,         ///< NVIDIA's for MXFP8: the least scale without saturation
  mx_round_up_from_1,  ///< the same, at least 2^-126: DeepGEMM
  mx_torchao_floor,    ///< torchao 0.18.0: divides by at least 2^-126
  mx_torchao_even,
  mx_torchao_ceil,
  mx_torchao_round_up,  ///< ceil(log2(b / max))
  // FP8: binary32 scales
  fp8,                ///< Transformer Engine: max / b
  fp8_power_of_two,   ///< Transformer Engine: the same, without its fraction
  fp8_divide,         ///< DeepSeek-V3: b / max
  fp8_reciprocal,     ///< DeepGEMM: b / max, values times its reciprocal
  fp8_reciprocal_up,  ///< DeepGEMM: b / max, rounded up to a power of two
  fp8_binary64        ///< torchao: max / b, in binary64
};

struct Recipe {
  std::string_view name;
  Element element;
  Shape block;
  ScaleFormat scale;
  Formula formula;
  SecondScale second = SecondScale::none;
  ElementRounding rounding = ElementRounding::ties_to_even;
  bool hadamard = false;             ///< rows of 16 are transformed before they are quantised
  bool saturate = true;              ///< Encoding::saturate, of the elements
  float least = 0;                   ///< the largest magnitude of a block counts as at least this
  std::uint32_t multiple_of = 1;     ///< the last dimension must be a multiple of this
  std::string_view dialect_of = "";  ///< for a library's deviation: the recipe that it means
  std::string_view source = "";      ///< the library or paper
};

/// All recipes, then the dialects of libraries.
std::span<const Recipe> recipes();

/// Returns null if no recipe has that name. Capitals and colons do not matter; "mxfp8" is NVIDIA's
/// rule, "mxfp8-e4m3-rceil", and "mxfp8-floor" has E4M3.
const Recipe* find_recipe(std::string_view name);

/// Returns the recipe. Throws std::invalid_argument with the name if there is none.
const Recipe& recipe_named(std::string_view name);

}  // namespace halfscope::block
