// SPDX-License-Identifier: Apache-2.0
// A table of an answer in a terminal.
#pragma once

#include <string>

#include "reports/answer/table.hpp"

namespace halfscope::cli::terminal {

/// Title, note and columns, numbers on the right; the first rows, and how many more there are.
std::string table_text(const reports::answer::Table& table);

}  // namespace halfscope::cli::terminal
