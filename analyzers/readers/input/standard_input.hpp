// SPDX-License-Identifier: Apache-2.0
// Standard input as a log: another program pipes its output into this one.
#pragma once

#include <filesystem>
#include <string_view>

namespace halfscope::analyzers::readers::input {

/// The path that stands for standard input, and its name in answers.
inline constexpr std::string_view kStandardInput = "standard input";

/// Reads all of standard input into a temporary file; if it is redirected from a file, keeps that
/// file instead. The path above stands for it from now on. Later calls do nothing. Throws
/// log::BadInput if standard input is a terminal, a folder or closed.
void take_standard_input();

/// Returns true if a path stands for standard input. False before take_standard_input().
bool is_standard_input(const std::filesystem::path& path);
/// Returns true if a path leads to a regular file or stands for standard input or for memory.
bool is_file(const std::filesystem::path& path);
/// Returns true if a path leads to a file or folder or stands for standard input or for memory.
bool exists(const std::filesystem::path& path);
/// Returns a new descriptor of the file with standard input; -1, with errno set, if there is none.
int standard_input();

}  // namespace halfscope::analyzers::readers::input
