// SPDX-License-Identifier: Apache-2.0
// Checks of arguments. Internal to reduction/.
#pragma once

#include <cstddef>
#include <string>

#include "halfscope/number/format.hpp"

namespace halfscope::reduction {

/// Throws std::invalid_argument with the message `what`.
[[noreturn]] void fail(const std::string& what);
/// Throws std::invalid_argument if there are no addends or the format cannot accumulate.
void check_sum(Format f, std::size_t addends);

}  // namespace halfscope::reduction
