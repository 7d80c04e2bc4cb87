// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/folder.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>

#include "halfscope/log/error.hpp"

namespace halfscope::log {

namespace fs = std::filesystem;

std::vector<fs::path> entries(const fs::path& folder, std::string_view wanted) {
  std::error_code error;
  std::vector<fs::path> paths;
  fs::directory_iterator entry(folder, error);
  for (const fs::directory_iterator end; !error && entry != end; entry.increment(error)) {
    paths.push_back(entry->path());
  }
  if (error) {
    throw BadInput(printable(folder.string()) + ": cannot list this folder (" + error.message() +
                   "); " + std::string(wanted));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_of_kernel(const std::filesystem::path& path) {
  constexpr unsigned kKinds[] = {PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,
                                 TRACEFS_MAGIC,      SECURITYFS_MAGIC,    BPF_FS_MAGIC,
                                 CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, PSTOREFS_MAGIC};
  struct statfs about = {};
  if (statfs(path.c_str(), &about) != 0) return false;
  const auto kind = static_cast<unsigned>(about.f_type);
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

}  // namespace halfscope::log
