// SPDX-License-Identifier: Apache-2.0
// A tile: some blocks beside each other. For quantise*.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "halfscope/block/quantise.hpp"

namespace halfscope::block {

/// Consecutive values of one row of a tensor, which begin with a block. The last block may have
/// fewer columns than the others.
struct Span {
  std::size_t count;  ///< number of values
  int log2_width;     ///< base-2 logarithm of a block's columns; 63 if all values are one block's
};

/// Sets each element of `largest`, one a block, to the encoding of the largest magnitude among the
/// element itself and the block's values.
void update_largest(const float* values, Span span, std::uint32_t* largest);

/// Encodes the values of a span, each multiplied or divided by its block's factor.
/// Only for ElementRounding::ties_to_even, saturating, and elements with a Format.
void encode_span(Element element, bool divide, const float* values, Span span, const float* factors,
                 std::uint8_t* codes);

/// Returns true if encode_span() gives the recipe's elements.
constexpr bool has_vector_code(const Recipe& recipe) {
  return recipe.element != Element::hifloat8 && recipe.saturate &&
         recipe.rounding == ElementRounding::ties_to_even;
}

}  // namespace halfscope::block
