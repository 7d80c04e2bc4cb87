// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

bool Table::is_number(std::size_t column) const {
  return std::ranges::any_of(rows,
                             [&](const Row& row) { return row.cells.at(column).key.has_value(); });
}

std::string left_out_text(std::size_t rows, std::string_view commands) {
  return fmt::format("{} more {} left out here. {} writes all.", count_text(rows),
                     rows == 1 ? "row is" : "rows are", commands);
}

}  // namespace halfscope::reports::answer
