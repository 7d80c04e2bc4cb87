// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/logs_below.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <system_error>
#include <utility>

#include "analyzers/readers/kinds.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/folder.hpp"

namespace halfscope::analyzers::readers {
namespace {

namespace fs = std::filesystem;

constexpr int kLevels = 4;
constexpr std::size_t kMostFolders = 256, kMostEntries = 10'000;

/// Breadth-first search of folders for logs.
class Search {
 public:
  LogsBelow below(const log::OpenPath& folder) {
    add_folders(folder.path, 1);
    while (!waiting_.empty()) {
      const auto [next, level] = std::move(waiting_.front());
      waiting_.pop_front();
      if (++folders_ > kMostFolders) {
        found_.all = false;
        break;
      }
      std::string names;
      for (const Kind* const kind : kinds_of({next, folder.files.none_of_these()})) {
        names += (names.empty() ? "" : ", ") + name_of(*kind);
      }
      if (!names.empty()) {
        found_.logs.push_back({next, std::move(names)});
      } else if (level < kLevels) {
        add_folders(next, level + 1);
      }
    }
    std::ranges::sort(found_.logs, {}, &LogsBelow::Found::path);
    return std::move(found_);
  }

 private:
  void add_folders(const fs::path& folder, int level) {
    if (log::is_of_kernel(folder)) return;
    std::error_code error, unreadable;
    std::vector<fs::path> folders;
    fs::directory_iterator entry(folder, error);
    for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
      if (++entries_ > kMostEntries) {
        found_.all = false;
        break;
      }
      const bool hidden = entry->path().filename().string().starts_with('.');
      if (!hidden && fs::is_directory(entry->symlink_status(unreadable))) {
        folders.push_back(entry->path());
      }
    }
    std::ranges::sort(folders);
    for (fs::path& path : folders) waiting_.emplace_back(std::move(path), level);
  }

  std::deque<std::pair<fs::path, int>> waiting_;
  std::size_t folders_ = 0, entries_ = 0;
  LogsBelow found_;
};

}  // namespace

LogsBelow logs_below(const log::OpenPath& folder) {
  std::error_code unreadable;
  return fs::is_directory(folder.path, unreadable) ? Search().below(folder) : LogsBelow();
}

std::string list_text(const LogsBelow& below) {
  constexpr std::size_t kMostNamed = 12;
  if (below.logs.empty()) return "";
  const std::size_t named = std::min(below.logs.size(), kMostNamed);
  std::string list;
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i > 0 && i + 1 == below.logs.size();
    list += fmt::format("{}'{}' ({})",
                        i == 0 ? ""
                        : last ? " and "
                               : ", ",
                        log::printable(below.logs[i].path.string()), below.logs[i].is);
  }
  if (below.logs.size() > named) list += fmt::format(" and {} more", below.logs.size() - named);
  if (!below.all) list += ", and perhaps others";
  return fmt::format("is no log itself; the logs in it are {}; name one", list);
}

}  // namespace halfscope::analyzers::readers
