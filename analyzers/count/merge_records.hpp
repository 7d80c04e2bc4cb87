// SPDX-License-Identifier: Apache-2.0
// `halfscope merge`: files of counted parts as one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::count {

/// A log whose parts were merged.
struct MergedLog {
  std::string log;
  std::uint64_t parts = 0, of = 0;
  std::uint64_t missing() const { return of > parts ? of - parts : 0; }
};

/// What must be there of each log.
enum class Wanted { any_parts, all_parts };

struct Merged {
  std::vector<MergedLog> logs;        ///< by name
  std::vector<std::string> problems;  ///< one line each; where there are some nothing is written
};

/// The union of the files' parts, by log and number: the same bytes for any partition, in any
/// order. The same part in several files is one. A part that is damaged or cut, that differs from
/// another of its number, or was counted with other options than its log's others is a problem.
/// Throws log::BadInput where the file cannot be written.
Merged merge_records(const std::vector<std::filesystem::path>& files,
                     const std::filesystem::path& out, Wanted wanted,
                     const frames::Progress& progress);

}  // namespace halfscope::analyzers::count
