// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace halfscope::log {

inline constexpr const char* kUnpackLimit = "HALFSCOPE_UNPACK_LIMIT";
inline constexpr const char* kNameLimit = "HALFSCOPE_NAME_LIMIT";

/// Returns the whole number of bytes in the environment variable, with which the user replaces a
/// limit on what a log may cost. Returns `otherwise` if it is not set or empty. Throws
/// std::invalid_argument if it is anything else.
std::uint64_t user_limit(const char* variable, std::uint64_t otherwise);

/// Looks at both limits before a log is read. Throws std::invalid_argument as user_limit() does.
void check_user_limits();

}  // namespace halfscope::log
