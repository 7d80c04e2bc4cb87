// SPDX-License-Identifier: Apache-2.0
// `halfscope count`: counts parts of logs into a record file; record files can be merged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyzers/frames/part.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::count {

/// The parts that one of `of` jobs counts: every `of`th from number `index` on, at least 1.
struct Shard {
  std::uint64_t index = 1, of = 1;
};

/// Logs, and how their files are opened.
struct Origin {
  /// A path prefix of local copies, and the original prefix that records and notes show instead.
  struct Renamed {
    std::string from, to;
  };
  std::vector<std::filesystem::path> logs;
  log::OpenFiles files;
  std::vector<Renamed> renamed = {};
};
/// Returns an origin whose files are opened on this machine.
Origin local_logs(std::vector<std::filesystem::path> logs);
/// Returns the arriving bytes of a file.
using Arrivals = std::function<std::shared_ptr<log::Arrival>(const std::filesystem::path&)>;
Origin arriving_logs(std::vector<std::filesystem::path> logs, const Arrivals& arrivals,
                     std::vector<Origin::Renamed> renamed);

struct Counted {
  std::uint64_t parts = 0;  ///< parts that belong to the shard
  std::uint64_t kept = 0;   ///< parts of the shard that the file already had
};

/// Counts the parts of a shard and appends each to the file as soon as it is counted. Skips parts
/// that the file already has, so that a stopped job can continue. Throws log::BadInput; parts
/// counted before the error stay in the file.
Counted count_parts(const Origin& origin, const frames::Selection& selection, Shard shard,
                    const std::filesystem::path& file, frames::Notes& notes,
                    const frames::Progress& progress);

/// Returns the parts of the logs, one log after another.
frames::Parts parts_of(const Origin& origin, const frames::Selection& selection);

}  // namespace halfscope::analyzers::count
