// SPDX-License-Identifier: Apache-2.0
// A tile: some blocks beside each other. For quantise*.cpp only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "halfscope/block/quantise.hpp"

namespace halfscope::block {

/// Consecutive values of a row of blocks, `width` columns each (the last may be shorter), in
/// vectors. log2_width: the logarithm of `width` if it is a power of two; 63 for one single block.
struct Span {
  std::size_t count;
  int log2_width;
};

/// Raises each element of `largest`, one a block, to the encoding of the largest magnitude.
void raise_largest(const float* values, Span span, std::uint32_t* largest);

/// Encodes values of span.count / width blocks, each multiplied or divided by its block's factor.
/// Only for ElementRounding::ties_to_even, saturating, and elements with a Format.
void encode_span(Element element, bool divide, const float* values, Span span, const float* factors,
                 std::uint8_t* codes);

/// Returns true if encode_span() gives the recipe's elements.
constexpr bool has_vector_code(const Recipe& recipe) {
  return recipe.element != Element::hifloat8 && recipe.saturate &&
         recipe.rounding == ElementRounding::ties_to_even;
}

}  // namespace halfscope::block
