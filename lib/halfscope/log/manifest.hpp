// SPDX-License-Identifier: Apache-2.0
// run.json, read and written: what RunLog and RunLogWriter do for users.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "halfscope/log/run_log.hpp"

namespace halfscope::log {

inline constexpr const char* kManifestFile = "run.json";

/// Throws BadInput naming the file, what was found and what was wanted.
Manifest read_manifest(const OpenPath& file);

/// The same of a text; `where` begins messages.
Manifest manifest_of(std::string_view text, const std::string& where);
/// In one line, with the version that wrote the log where the manifest has it. Throws BadInput.
std::string text_of(const Manifest& manifest, const std::string& where);

/// Writes a file beside `file` and renames it into place. Throws BadInput.
void write_manifest(const std::filesystem::path& file, const Manifest& manifest);

}  // namespace halfscope::log
