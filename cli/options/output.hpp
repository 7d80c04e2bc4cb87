// SPDX-License-Identifier: Apache-2.0
// Where results are written to.
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

/// Refuses an output that is one of the logs or lies inside one, and two outputs to one file, "-"
/// too; those that nobody asked for are empty. Throws BadUsage naming both.
void require_own_files(const std::vector<std::string>& outputs, const LogOptions& options);

/// log::require_ending() of --out. Throws BadUsage.
std::size_t require_ending(const std::string& path, std::initializer_list<std::string_view> known);

/// Writes text to a file, or to stdout for "-", through a temporary file beside it.
/// Throws log::BadInput naming the path.
void write_output(const std::string& path, std::string_view text);
using reports::exports::WriteText;
/// The same of text that comes piece by piece.
void write_pieces(const std::string& path, const std::function<void(const WriteText&)>& pieces);

}  // namespace halfscope::cli::options
