// SPDX-License-Identifier: Apache-2.0
// Computes dot products for lines of input.
#pragma once

#include "halfscope/tensor_core/mma.hpp"

namespace halfscope::cli::emulate {

/// A Tensor Core's dot product: the format of A and B, and the accumulator of C and D.
struct DotProduct {
  tensor_core::Unit unit;
  tensor_core::Accumulator accumulator;
  Format elements;
};

/// For each line "a,a,... b,b,... c" on descriptor `in`, writes the hexadecimal D of chain() to
/// `out`. Text after c and blank lines are ignored. All lines that have arrived are answered before
/// the function waits for more.
///
/// Throws log::BadInput if a descriptor cannot be read or written, or if a line is invalid. The
/// message names the line; the answers to earlier lines are written first.
void answer_dots(const DotProduct& product, int in, int out);

}  // namespace halfscope::cli::emulate
