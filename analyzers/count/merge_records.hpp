// SPDX-License-Identifier: Apache-2.0
// `halfscope merge`: combines files of counted parts into one file. Rows of a
// database: the histograms and scalars of counted parts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "analyzers/frames/part.hpp"
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

/// One tensor at one step of one part, as recorded.
struct TensorRow {
  std::string name;
  std::string_view role;
  std::string_view dtype;  ///< empty if unknown
  std::int64_t step = 0;
  double scale = 1.0;  ///< unscaled value = recorded value / scale
  std::uint64_t total = 0;
  Interval zero, nan, inf;
};

/// The values of one tensor in one binade, or between two magnitudes if the binade is unknown.
struct BinadeRow {
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  std::int64_t exponent = kNone;  ///< magnitudes in [2^e, 2^(e+1)); kNone if unknown
  double low = 0;                 ///< lower bound of the magnitudes
  double high = 0;                ///< upper bound of the magnitudes; infinity if there is none
  std::uint64_t count = 0;
  std::int64_t negative = kNone;  ///< number of negative values; kNone if unknown
  std::size_t tensor = 0;         ///< index of the tensor's row, from 0
};

/// One scalar at one step, with its name in the log: docs/run-log.md. found_inf is 0 or 1.
struct ScalarRow {
  std::string name;
  std::int64_t step = 0;
  double value = 0;
};

struct PartRows {
  std::vector<TensorRow> tensors;
  std::vector<BinadeRow> binades;
  std::vector<ScalarRow> scalars;
};

/// Returns the rows of a part, in its order. Throws log::BadInput.
PartRows rows_of(const frames::Part& part, frames::Notes& notes, const frames::Progress& progress);

}  // namespace halfscope::analyzers::count
