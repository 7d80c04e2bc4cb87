// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace halfscope::log {

inline constexpr const char* kUnpackLimit = "HALFSCOPE_UNPACK_LIMIT";
inline constexpr const char* kNameLimit = "HALFSCOPE_NAME_LIMIT";

/// Returns the number of bytes in an environment variable by which users replace a limit on memory
/// or disk use. Returns `otherwise` if it is unset or empty. Throws std::invalid_argument for any
/// other text.
std::uint64_t user_limit(const char* variable, std::uint64_t otherwise);

/// Checks both variables before a log is read. Throws std::invalid_argument as user_limit() does.
void check_user_limits();

}  // namespace halfscope::log
