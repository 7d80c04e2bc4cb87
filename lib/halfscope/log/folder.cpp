// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/folder.hpp"

#include <algorithm>
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

}  // namespace halfscope::log
