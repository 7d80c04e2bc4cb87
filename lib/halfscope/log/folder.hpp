// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace halfscope::log {

/// What a folder holds, by name. Throws BadInput that says what is `wanted` where it cannot be
/// listed.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder,
                                           std::string_view wanted);

}  // namespace halfscope::log
