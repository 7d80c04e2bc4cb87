// SPDX-License-Identifier: Apache-2.0
// Reads and writes run.json. RunLog and RunLogWriter are the public interface.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "halfscope/log/run_log.hpp"

namespace halfscope::log {

inline constexpr const char* kManifestFile = "run.json";

/// Throws BadInput that names the file, what was found and what was expected.
Manifest read_manifest(const OpenPath& file);

/// Parses the text of a manifest; `where` is the beginning of error messages.
Manifest manifest_of(std::string_view text, const std::string& where);
/// Returns one line of JSON, with the writer's version if `about` has it. Throws BadInput.
std::string text_of(const Manifest& manifest, const std::string& where);

/// Writes to a temporary file and renames it to `file`. Throws BadInput.
void write_manifest(const std::filesystem::path& file, const Manifest& manifest);

}  // namespace halfscope::log
