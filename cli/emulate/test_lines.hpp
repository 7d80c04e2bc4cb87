// SPDX-License-Identifier: Apache-2.0
// Computes operations for lines in TestFloat's format.
#pragma once

#include "halfscope/number/modes.hpp"
#include "halfscope/number/operation_table.hpp"

namespace halfscope::cli::emulate {

/// For each line of hexadecimal operands on descriptor `in`, writes the operands, the result and
/// the flags to `out`. Text after the operands and blank lines are ignored. All lines that have
/// arrived are answered before the function waits for more.
///
/// Throws log::BadInput if a descriptor cannot be read or written, or if a line is invalid. The
/// message names the line; the answers to earlier lines are written first.
void answer_lines(const Operation& operation, const Modes& modes, bool exact, int in, int out);

}  // namespace halfscope::cli::emulate
