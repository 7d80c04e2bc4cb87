// SPDX-License-Identifier: Apache-2.0
// run.json, read and written. Private to the log library: users see RunLog and RunLogWriter.
#pragma once

#include <filesystem>

#include "halfscope/log/run_log.hpp"

namespace halfscope::log {

inline constexpr const char* kManifestFile = "run.json";

/// Throws BadInput naming the file, what was found and what was wanted.
Manifest read_manifest(const OpenPath& file);

/// Writes a file beside `file` and renames it into place. Throws BadInput.
void write_manifest(const std::filesystem::path& file, const Manifest& manifest);

}  // namespace halfscope::log
