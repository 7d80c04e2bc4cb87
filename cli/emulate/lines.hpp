// SPDX-License-Identifier: Apache-2.0
// Answers to lines of input: operations in TestFloat's format, and dot products.
#pragma once

#include <string_view>
#include <vector>

#include "halfscope/number/modes.hpp"
#include "halfscope/number/operation_table.hpp"
#include "halfscope/tensor_core/scaled_mma.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::cli::emulate {

/// For each line of hexadecimal operands on descriptor `in`, writes the operands, the result and
/// the flags to `out`. Text after the operands and blank lines are ignored. All lines that have
/// arrived are answered before the function waits for more.
///
/// Throws log::BadInput if a descriptor cannot be read or written, or if a line is invalid. The
/// message names the line; the answers to earlier lines are written first.
void answer_lines(const Operation& operation, const Modes& modes, bool exact, int in, int out);

/// A Tensor Core's dot product.
struct DotProduct {
  tensor_core::ScaledUnit unit;  ///< block 0: without scales
  tensor_core::Accumulator accumulator;
  Format a, b;  ///< formats of the elements
};

/// Returns what explains the dot product of a text such as a line of answer_dots(). Throws
/// log::BadInput.
std::vector<reports::answer::Section> explain_dot(const DotProduct& product, std::string_view text);

/// For each line "a,a,... b,b,... c" on descriptor `in`, writes the hexadecimal D of chain() to
/// `out`. If there are scales, those of a and those of b follow c, and D is that of scaled_chain().
/// Text after them and blank lines are ignored. All lines that have arrived are answered before the
/// function waits for more.
///
/// Throws log::BadInput if a descriptor cannot be read or written, or if a line is invalid. The
/// message names the line; the answers to earlier lines are written first.
void answer_dots(const DotProduct& product, int in, int out);

}  // namespace halfscope::cli::emulate
