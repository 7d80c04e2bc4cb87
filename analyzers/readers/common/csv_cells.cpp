// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/csv_cells.hpp"

namespace halfscope::analyzers::readers::common {

void split_cells(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  for (;;) {
    const bool quoted = line.starts_with('"');
    const std::size_t quote = quoted ? line.find('"', 1) : 0;  // the second one
    const std::size_t end = quote < line.size() ? line.find(',', quote) : std::string_view::npos;
    cells.push_back(quoted ? line.substr(1, quote - 1) : line.substr(0, end));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

}  // namespace halfscope::analyzers::readers::common
