// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensorboard/tensorboard_files.hpp"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "analyzers/readers/common/log_files.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_outline.hpp"

namespace halfscope::analyzers::readers::tensorboard {
namespace {

namespace fs = std::filesystem;

/// Returns true if the first record has correct checksums and is an event. TFRecord files of other
/// content have the same framing.
bool begins_with_event(const log::OpenPath& file) {
  constexpr std::size_t kHeaderBytes = 12;
  constexpr std::uint64_t kMost = 1 << 20;
  const std::string header = common::beginning_of(file, kHeaderBytes);
  const auto length = log::record_length(header);
  if (!length) return false;
  if (*length > kMost) return true;  // a valid record, too large to read
  const std::string begin =
      common::beginning_of(file, kHeaderBytes + static_cast<std::size_t>(*length));
  log::EventOutline event;
  return begin.size() == kHeaderBytes + *length &&
         event.read(std::string_view(begin).substr(kHeaderBytes));
}

bool is_named_as_one(const fs::path& file) {
  return file.filename().string().find("tfevents") != std::string::npos;
}

}  // namespace

std::vector<log::OpenPath> event_files_of(const log::OpenPath& log) {
  std::vector<log::OpenPath> files;
  for (fs::path& file : common::files_of(log.path)) files.push_back(log.at(std::move(file)));
  const bool alone = files.size() == 1 && files.front().path == log.path;
  std::erase_if(files, [&](const log::OpenPath& file) {
    return !begins_with_event(file) && (alone || !is_named_as_one(file.path));
  });
  return files;
}

std::optional<fs::path> folder_with_events_in(const fs::path& folder) {
  constexpr int kMostFolders = 200, kDepth = 3;
  int seen = 0;
  std::error_code error;
  if (!fs::is_directory(folder, error)) return std::nullopt;
  std::optional<fs::path> first;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    std::error_code unreadable;
    if (!entry->is_directory(unreadable)) continue;
    if (++seen > kMostFolders) break;
    const bool hidden = entry->path().filename().string().starts_with('.');
    if (hidden || common::is_run_log(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry.depth() + 1 >= kDepth) entry.disable_recursion_pending();
    if (first && *first < entry->path()) continue;
    if (!event_files_of(entry->path()).empty()) first = entry->path();
  }
  return first;
}

}  // namespace halfscope::analyzers::readers::tensorboard
