// SPDX-License-Identifier: Apache-2.0
// `halfscope merge`: combines files of counted parts into one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::count {

/// One log of the merged file: the number of its parts that are present, and of all its parts.
struct MergedLog {
  std::string log;
  std::uint64_t parts = 0, of = 0;
  std::uint64_t missing() const { return of > parts ? of - parts : 0; }
};

/// The parts that must be present of each log.
enum class Wanted { any_parts, all_parts };

struct Merged {
  std::vector<MergedLog> logs;        ///< sorted by name
  std::vector<std::string> problems;  ///< one line each; if not empty, nothing is written
};

/// Writes the union of the files' parts, sorted by log and number: the bytes are the same for any
/// partition and any order of `files`. Equal parts are written once. Problems are: a part that is
/// damaged or truncated, that differs from another part of the same number, or that was counted
/// with other options than its log's other parts. Throws log::BadInput if the file cannot be
/// written.
Merged merge_records(const std::vector<std::filesystem::path>& files,
                     const std::filesystem::path& out, Wanted wanted,
                     const frames::Progress& progress);

}  // namespace halfscope::analyzers::count
