// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace halfscope::log {

/// Returns true if a path is on a file system of the kernel (proc, sysfs, debugfs and similar).
/// Files there count as regular, but reading some of them never returns.
bool is_of_kernel(const std::filesystem::path& path);

}  // namespace halfscope::log
