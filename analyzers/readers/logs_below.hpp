// SPDX-License-Identifier: Apache-2.0
// Logs in the folders of a folder that is none itself.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers {

struct LogsBelow {
  struct Found {
    std::filesystem::path path;
    std::string is;  ///< "console logs"
  };
  std::vector<Found> logs;  ///< by path
  bool all = true;          ///< false: there are more folders than were looked into
};

/// Up to four levels down. Hidden folders, links and what lies in a log are not looked into. Never
/// throws log::BadInput.
LogsBelow logs_below(const log::OpenPath& folder);

/// "is no log itself; the logs in it are 'a' (run logs) and 'b' (console logs); name one", or
/// nothing.
std::string list_text(const LogsBelow& below);

}  // namespace halfscope::analyzers::readers
