// SPDX-License-Identifier: Apache-2.0
// Pairs that a program prints over several lines: a table with a pair a row, or a line with a step
// and indented lines below it.
#pragma once

#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::lines {

/// Whether a line may be the first of a block. False for most lines, at little cost.
bool may_begin_block(std::string_view line);

/// Whether a line belongs to the block that `first` begins; `first` is a line of
/// may_begin_block().
bool is_in_block(std::string_view first, std::string_view line);

/// Adds a line of a block to what is read as one line: "| loss | nan |" becomes "loss: nan, ".
void add_to_block(std::string_view line, std::string& block);

/// The most lines of a block.
inline constexpr int kLongestBlock = 256;

}  // namespace halfscope::analyzers::readers::lines
