// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace halfscope::log {

/// Whether a path lies on a file system of the kernel's own (proc, sysfs, debugfs and the like).
/// Their files count as regular ones, and reading some waits for ever.
bool is_of_kernel(const std::filesystem::path& path);

}  // namespace halfscope::log
