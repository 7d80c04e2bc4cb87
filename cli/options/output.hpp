// SPDX-License-Identifier: Apache-2.0
// Output files.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/common.hpp"
#include "reports/export/json.hpp"

namespace halfscope::cli::options {

/// Throws BadUsage if an output is a log or inside one, or if two outputs are the same file or both
/// "-". The message names both. Empty outputs are ignored.
void require_own_files(const std::vector<std::string>& outputs, const LogOptions& options);

/// Calls log::require_ending() for --out. Throws BadUsage.
std::size_t require_ending(const std::string& path, std::initializer_list<std::string_view> known);

/// Writes text to a file, or to stdout for "-". A file is written under a temporary name in the
/// same folder and then renamed. Throws log::BadInput, which names the path.
void write_output(const std::string& path, std::string_view text);
using reports::exports::WriteText;
/// Calls `pieces` with a function that appends text to the output; otherwise as write_output().
void write_pieces(const std::string& path, const std::function<void(const WriteText&)>& pieces);

}  // namespace halfscope::cli::options
