// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/log_files.hpp"

#include <algorithm>
#include <fstream>

#include "halfscope/log/kernel_files.hpp"

namespace halfscope::analyzers::readers::common {

namespace fs = std::filesystem;

bool is_run_log(const fs::path& log) {
  std::error_code unreadable;
  return fs::exists(log / "run.json", unreadable);
}

std::string beginning_of(const fs::path& file, std::size_t most) {
  std::error_code unreadable;
  if (!fs::is_regular_file(file, unreadable)) return {};  // a pipe would be waited for
  std::ifstream in(file, std::ios::binary);
  std::string text(most, '\0');
  in.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return text;
}

std::vector<fs::path> files_of(const fs::path& log) {
  if (log::is_of_kernel(log)) return {};
  std::error_code error;
  if (fs::is_regular_file(log, error)) return {log};
  std::vector<fs::path> files;
  fs::directory_iterator entries(log, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code unreadable;
    const bool hidden = entries->path().filename().string().starts_with('.');
    if (!hidden && entries->is_regular_file(unreadable)) files.push_back(entries->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace halfscope::analyzers::readers::common
