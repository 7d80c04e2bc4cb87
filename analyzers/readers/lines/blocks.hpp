// SPDX-License-Identifier: Apache-2.0
// Pairs that a program prints over several lines: a table with a pair a row, or a line with a step
// and indented lines below it.
#pragma once

#include <functional>
#include <optional>
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

/// The next line, which stays the next one; empty after the last.
using PeekLine = std::function<std::optional<std::string_view>()>;
/// If `first` begins a block, puts all of its lines, at most 256, into `block` and returns true.
/// Calls `skip` for each line after the first that it has taken. The console readers call it.
bool read_block(std::string_view first, const PeekLine& peek, const std::function<void()>& skip,
                std::string& block);

}  // namespace halfscope::analyzers::readers::lines
