// SPDX-License-Identifier: Apache-2.0
// Opens the files of logs. Compressed files are unpacked, UTF-16 text is converted to UTF-8, and
// the path "standard input" opens standard input. Readers therefore see plain bytes only.
#pragma once

#include <filesystem>
#include <memory>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::input {

/// Opens a file. Never returns null and never throws log::BadInput: if unpacking fails, the reason
/// is in the file's remarks(). A file that is certainly no log (gzip of an image) stays packed.
/// `arrival` fetches the file's bytes on demand; null if all bytes are in the file already.
std::shared_ptr<const log::OpenFile> open_input(const std::filesystem::path& path,
                                                std::shared_ptr<log::Arrival> arrival = nullptr);

/// Returns a cache of open files that opens each with open_input(). Throws log::BadInput if an
/// environment variable with a limit is not valid (log::check_user_limits()).
log::OpenFiles open_files();

}  // namespace halfscope::analyzers::readers::input
