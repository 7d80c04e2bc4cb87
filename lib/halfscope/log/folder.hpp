// SPDX-License-Identifier: Apache-2.0
// Lists folders, and recognises file systems of the kernel.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace halfscope::log {

/// Lists the entries of a folder, sorted by path. If it cannot be listed, throws BadInput; `wanted`
/// is the end of the message: what was expected instead.
std::vector<std::filesystem::path> entries(const std::filesystem::path& folder,
                                           std::string_view wanted);

/// Returns true if a path is on a file system of the kernel (proc, sysfs, debugfs and similar).
/// Files there count as regular, but reading some of them never returns.
bool is_of_kernel(const std::filesystem::path& path);

}  // namespace halfscope::log
