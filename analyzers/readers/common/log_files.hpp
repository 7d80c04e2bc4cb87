// SPDX-License-Identifier: Apache-2.0
// What lies at a log's path, before it is known what kind of log it is.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::common {

/// Whether a folder has a run.json.
bool is_run_log(const std::filesystem::path& log);

/// The first bytes of a regular file, at most `most`; empty where it cannot be read.
std::string beginning_of(const log::OpenPath& file, std::size_t most);
/// The last ones.
std::string end_of(const log::OpenPath& file, std::size_t most);

/// The regular files of a folder that are not hidden, by name; the file itself where it is one.
/// Empty where neither can be read.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& log);

}  // namespace halfscope::analyzers::readers::common
