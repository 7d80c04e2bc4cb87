// SPDX-License-Identifier: Apache-2.0
// The files of a log that have lines of a pattern: --lines.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/readers/lines/pattern.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::console {

/// The text files of a log in which some line matches, by path; reads each up to that line. Throws
/// frames::BadOption if there is none, with the line that has most in common with the pattern.
std::vector<std::filesystem::path> files_with(const lines::Pattern& pattern,
                                              const log::OpenPath& log);

/// A line as messages show it: its first 60 characters.
std::string shown_line(std::string_view line);

}  // namespace halfscope::analyzers::readers::console
