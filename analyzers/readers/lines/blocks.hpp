// SPDX-License-Identifier: Apache-2.0
// Pairs that a program prints over several lines: a table with one pair in each row, or a line with
// a step and indented lines below it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::lines {

/// Returns true if a line may be the first of a block. A fast check that is false for most lines.
bool may_begin_block(std::string_view line);

/// Returns true if `line` continues the block that `first` begins. Requires may_begin_block(first).
bool is_in_block(std::string_view first, std::string_view line);

/// Appends a line to `block`, the block in one line: "loss: nan, " for "| loss | nan |".
void add_to_block(std::string_view line, std::string& block);

/// Returns the next line without consuming it; empty after the last line.
using PeekLine = std::function<std::optional<std::string_view>()>;
/// If `first` begins a block, writes its lines, at most 256, into `block` as one line, calls `skip`
/// to consume each line after the first, and returns true. Otherwise does not change `block`.
bool read_block(std::string_view first, const PeekLine& peek, const std::function<void()>& skip,
                std::string& block);

}  // namespace halfscope::analyzers::readers::lines
