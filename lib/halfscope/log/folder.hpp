// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace halfscope::log {

/// Lists the entries of a folder, sorted by path. If it cannot be listed, throws BadInput; `wanted`
/// is the end of the message: what was expected instead.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder,
                                           std::string_view wanted);

}  // namespace halfscope::log
