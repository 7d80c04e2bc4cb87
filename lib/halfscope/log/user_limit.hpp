// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace halfscope::log {

/// Returns the whole number in the environment variable, with which the user replaces a limit on
/// what a log may cost. Returns `otherwise` if it is not set or is no whole number.
std::uint64_t user_limit(const char* variable, std::uint64_t otherwise);

}  // namespace halfscope::log
