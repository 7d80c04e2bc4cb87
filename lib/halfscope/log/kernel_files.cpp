// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/kernel_files.hpp"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <iterator>

namespace halfscope::log {

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
