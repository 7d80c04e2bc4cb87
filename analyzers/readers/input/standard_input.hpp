// SPDX-License-Identifier: Apache-2.0
// A log that another program writes into this one.
#pragma once

#include <filesystem>
#include <string_view>

namespace halfscope::analyzers::readers::input {

/// The path that stands for it, and its name in answers.
inline constexpr std::string_view kStandardInput = "standard input";

/// Reads all of it, or keeps the file that it is; from now on the path above stands for it. Throws
/// log::BadInput where it is a terminal, a folder or closed. Again, it does nothing.
void take_standard_input();

/// Whether a path stands for it: never, where it was not taken.
bool is_standard_input(const std::filesystem::path& path);
/// Whether a path is that of a regular file, or stands for standard input.
bool is_file(const std::filesystem::path& path);
/// Whether there is anything at a path.
bool exists(const std::filesystem::path& path);
/// A new descriptor of what was taken; -1 with errno where there is none.
int standard_input();

}  // namespace halfscope::analyzers::readers::input
