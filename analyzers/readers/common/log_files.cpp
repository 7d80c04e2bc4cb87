// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/log_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "analyzers/readers/input/standard_input.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/folder.hpp"

namespace halfscope::analyzers::readers::common {

namespace fs = std::filesystem;
using log::printable;

bool is_run_log(const fs::path& log) {
  std::error_code unreadable;
  return fs::exists(log / "run.json", unreadable);
}

namespace {

constexpr std::size_t kJsonLookedAt = std::size_t{1} << 18;  // bytes
constexpr std::size_t kLookedAt = 64;  // files, and folders, examined in one folder

/// Null if the file is not regular or cannot be read.
std::shared_ptr<const log::OpenFile> regular(const log::OpenPath& file) {
  if (!input::is_file(file.path)) return nullptr;  // opening a device may block
  auto opened = file.open();
  return opened->is_regular() ? opened : nullptr;
}

std::string part_of(const log::OpenFile& file, std::uint64_t offset, std::size_t most) {
  std::string text(most, '\0');
  text.resize(file.read(offset, text.data(), most));
  return text;
}

/// The entries of a folder that are not hidden and for which `is_wanted` returns true, by name.
template <typename IsWanted>
std::vector<fs::path> entries_of(const fs::path& folder, const IsWanted& is_wanted) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const bool hidden = entries->path().filename().string().starts_with('.');
    if (!hidden && is_wanted(*entries)) found.push_back(entries->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<fs::path> first_of(std::vector<fs::path> paths) {
  paths.resize(std::min(paths.size(), kLookedAt));
  return paths;
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

std::string json_beginning_of(const log::OpenPath& file) {
  std::string text = beginning_of(file, kJsonLookedAt);
  text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text.starts_with('{') || text.starts_with('[') ? text : "";
}

bool has_all(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::all_of(
      words, [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::vector<fs::path> files_of(const fs::path& log) {
  if (log::is_of_kernel(log)) return {};
  if (input::is_file(log)) return {log};
  return entries_of(log, [](const fs::directory_entry& entry) {
    std::error_code unreadable;
    return entry.is_regular_file(unreadable);
  });
}

std::vector<fs::path> folders_of(const fs::path& folder) {
  return entries_of(folder, [](const fs::directory_entry& entry) {
    std::error_code unreadable;
    return fs::is_directory(entry.symlink_status(unreadable));
  });
}

std::vector<fs::path> files_below(const log::OpenPath& log, int levels, IsOne* is_one) {
  std::vector<fs::path> files = files_of(log.path);
  std::erase_if(files, [&](const fs::path& file) { return !is_one(log.at(file)); });
  if (levels == 0) return files;
  for (const fs::path& folder : folders_of(log.path)) {
    for (fs::path& file : files_below(log.at(folder), levels - 1, is_one)) {
      files.push_back(std::move(file));
    }
  }
  return files;
}

bool any_file_below(const log::OpenPath& log, int levels, IsOne* is_one) {
  const auto is = [&](const fs::path& file) { return is_one(log.at(file)); };
  const auto holds = [&](const fs::path& folder) {
    return any_file_below(log.at(folder), levels - 1, is_one);
  };
  return std::ranges::any_of(first_of(files_of(log.path)), is) ||
         (levels > 0 && std::ranges::any_of(first_of(folders_of(log.path)), holds));
}

std::uint64_t bytes_of(const log::OpenPath& log, const std::vector<fs::path>& files) {
  std::uint64_t bytes = 0;
  for (const fs::path& file : files) bytes += log.at(file).open()->size();
  return bytes;
}

void require_one_run(const fs::path& log, const std::string& what,
                     const std::vector<fs::path>& runs) {
  constexpr std::size_t kShown = 5;
  constexpr std::size_t kLongest = 512;  // bytes of a path
  if (runs.size() < 2) return;
  std::string list;
  for (std::size_t i = 0; i < std::min(runs.size(), kShown); ++i) {
    list += (i == 0 ? "'" : ", '") + printable(runs[i].string().substr(0, kLongest)) + "'";
  }
  if (runs.size() > kShown) list += fmt::format(" and {} more", runs.size() - kShown);
  throw log::BadInput(fmt::format("{}: holds {} {}: {}; expected one run: name one of these",
                                  printable(log.string()), runs.size(), what, list));
}

}  // namespace halfscope::analyzers::readers::common
