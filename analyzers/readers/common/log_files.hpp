// SPDX-License-Identifier: Apache-2.0
// The files at a log's path, before the kind of the log is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::common {

/// Returns true if a folder has a run.json.
bool is_run_log(const std::filesystem::path& log);

/// The first `most` bytes of a regular file, or all if it has fewer; empty if it cannot be read.
std::string beginning_of(const log::OpenPath& file, std::size_t most);
/// The last `most` bytes of a regular file; otherwise as beginning_of().
std::string end_of(const log::OpenPath& file, std::size_t most);
/// The first 256 KiB of a file from its first '{' or '[' on; empty if anything but blanks comes
/// before it.
std::string json_beginning_of(const log::OpenPath& file);
/// Returns true if a text contains all of the words.
bool has_all(std::string_view text, std::initializer_list<std::string_view> words);

/// The regular files of a folder that are not hidden, by name; if the path is a file, that file.
/// Empty if it cannot be read.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& log);
/// The folders in a folder that are neither hidden nor links, by name. Never throws.
std::vector<std::filesystem::path> folders_of(const std::filesystem::path& folder);

/// A test of files: returns true if a file is of a certain kind.
using IsOne = bool(const log::OpenPath& file);
/// The files of a folder, and of the folders in it down to `levels`, for which `is_one` returns
/// true: by path. If the path is a file, that file. Hidden files and links to folders are skipped.
std::vector<std::filesystem::path> files_below(const log::OpenPath& log, int levels, IsOne* is_one);
/// Returns true if there is such a file. Looks only at the first 64 files and folders of each
/// folder. Never throws.
bool any_file_below(const log::OpenPath& log, int levels, IsOne* is_one);

/// The sum of the sizes of some files of a log, unpacked, in bytes.
std::uint64_t bytes_of(const log::OpenPath& log, const std::vector<std::filesystem::path>& files);

/// Throws log::BadInput if there is more than one run. The message names some of them, so that the
/// user can choose; `what` is its word for runs, such as "MLflow runs".
void require_one_run(const std::filesystem::path& log, const std::string& what,
                     const std::vector<std::filesystem::path>& runs);

}  // namespace halfscope::analyzers::readers::common
