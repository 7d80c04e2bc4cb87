// SPDX-License-Identifier: Apache-2.0
// Lines of dot products in, results out.
#pragma once

#include "halfscope/tensor_core/mma.hpp"

namespace halfscope::cli::emulate {

/// A Tensor Core's dot product: elements of one format, C and D of another.
struct DotProduct {
  tensor_core::Unit unit;
  tensor_core::Accumulator accumulator;
  Format elements;
};

/// Answers each line "a,a,... b,b,... c" on descriptor `in` by the hexadecimal D of chain() on
/// `out`. Whatever follows c is passed over, and so are blank lines. All that has arrived is
/// answered before more is waited for.
///
/// Throws log::BadInput naming the line when it cannot be used, after the answers to those before
/// it are written; and when a descriptor cannot be read or written.
void answer_dots(const DotProduct& product, int in, int out);

}  // namespace halfscope::cli::emulate
