// SPDX-License-Identifier: Apache-2.0
// A table of an answer in a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "reports/answer/table.hpp"

namespace halfscope::cli::terminal {

/// Text is broken into lines of at most so many characters where no terminal tells its own width.
inline constexpr std::size_t kTextColumns = 100;

/// Title, note and columns, numbers on the right; the first rows, and how many more there are.
std::string table_text(const reports::answer::Table& table);

}  // namespace halfscope::cli::terminal
