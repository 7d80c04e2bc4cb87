// SPDX-License-Identifier: Apache-2.0
// Finds the files of a log that have lines of the pattern of --lines.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/lines/pattern.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::console {

/// Returns the text files of a log in which some line matches, by path. Reads each file up to that
/// line. Throws frames::BadOption, which shows the most similar line, if there is no such file.
std::vector<std::filesystem::path> files_with(const lines::Pattern& pattern,
                                              const log::OpenPath& log);

/// Returns the first 60 characters of a line, and ".." if it is longer, for messages.
std::string shown_line(std::string_view line);

}  // namespace halfscope::analyzers::readers::console
