// SPDX-License-Identifier: Apache-2.0
// The cells of lines of comma-separated values.
#pragma once

#include <string_view>
#include <vector>

namespace halfscope::analyzers::readers::common {

/// The cells of a line, without the quotes around those that hold a comma.
void split_cells(std::string_view line, std::vector<std::string_view>& cells);

}  // namespace halfscope::analyzers::readers::common
