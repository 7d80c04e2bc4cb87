// SPDX-License-Identifier: Apache-2.0
// The search for logs below a folder that is not a log itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers {

/// The logs found below a folder.
struct LogsBelow {
  struct Found {
    std::filesystem::path path;
    std::string is;  ///< names of its kinds, such as "console logs"
  };
  std::vector<Found> logs;  ///< sorted by path
  bool all = true;          ///< false if the search stopped before it saw every folder
};

/// Searches four levels of folders. Skips hidden folders, links and folders in logs. Never throws
/// log::BadInput.
LogsBelow logs_below(const log::OpenPath& folder);

/// Returns "is no log itself; the logs in it are 'a' (run logs) and 'b' (console logs); name one".
/// Empty if no log was found.
std::string list_text(const LogsBelow& below);

}  // namespace halfscope::analyzers::readers
