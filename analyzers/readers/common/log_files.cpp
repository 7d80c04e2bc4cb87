// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/log_files.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "analyzers/readers/input/standard_input.hpp"
#include "halfscope/log/kernel_files.hpp"

namespace halfscope::analyzers::readers::common {

namespace fs = std::filesystem;

bool is_run_log(const fs::path& log) {
  std::error_code unreadable;
  return fs::exists(log / "run.json", unreadable);
}

namespace {

/// Null where it is none that can be read.
std::shared_ptr<const log::OpenFile> regular(const log::OpenPath& file) {
  if (!input::is_file(file.path)) return nullptr;  // a device may wait
  auto opened = file.open();
  return opened->is_regular() ? opened : nullptr;
}

std::string part_of(const log::OpenFile& file, std::uint64_t offset, std::size_t most) {
  std::string text(most, '\0');
  text.resize(file.read(offset, text.data(), most));
  return text;
}

}  // namespace

std::string beginning_of(const log::OpenPath& file, std::size_t most) {
  const auto opened = regular(file);
  return opened ? part_of(*opened, 0, most) : std::string();
}

std::string end_of(const log::OpenPath& file, std::size_t most) {
  const auto opened = regular(file);
  if (!opened) return {};
  const std::uint64_t size = opened->size();
  const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size, most));
  return part_of(*opened, size - part, part);
}

std::vector<fs::path> files_of(const fs::path& log) {
  if (log::is_of_kernel(log)) return {};
  if (input::is_file(log)) return {log};
  std::error_code error;
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
