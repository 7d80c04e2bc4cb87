// SPDX-License-Identifier: Apache-2.0
// TestFloat's lines: operands in, operands with result and flags out.
#pragma once

#include "halfscope/number/modes.hpp"
#include "halfscope/number/operation_table.hpp"

namespace halfscope::cli::emulate {

/// Answers each line of hexadecimal operands on descriptor `in` by one on `out`: the operands, the
/// result and the flags. Whatever follows the operands on a line is passed over, and so are blank
/// lines. All that has arrived is answered before more is waited for.
///
/// Throws log::BadInput naming the line when it cannot be used, after the answers to those before
/// it are written; and when a descriptor cannot be read or written.
void answer_lines(const Operation& operation, const Modes& modes, bool exact, int in, int out);

}  // namespace halfscope::cli::emulate
