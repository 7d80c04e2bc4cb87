// SPDX-License-Identifier: Apache-2.0
// Layout of an answer's tables in a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "reports/answer/table.hpp"

namespace halfscope::cli::terminal {

/// Line length if the terminal's width is unknown.
inline constexpr std::size_t kTextColumns = 100;

/// Returns title, note, the first rows, and how many are not shown. Numbers are right-aligned.
std::string table_text(const reports::answer::Table& table);

}  // namespace halfscope::cli::terminal
