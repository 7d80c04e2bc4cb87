// SPDX-License-Identifier: Apache-2.0
// `halfscope count`: parts of logs, counted into a file that merges.
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

/// Every `of`th part, from number `index` on, which begins at 1: what one job of `of` counts.
struct Shard {
  std::uint64_t index = 1, of = 1;
};

/// Logs, and how their files are opened.
struct Origin {
  /// What paths begin with, and how they begin in records and notes: of files that are copies.
  struct Renamed {
    std::string from, to;
  };
  std::vector<std::filesystem::path> logs;
  log::OpenFiles files;
  std::vector<Renamed> renamed = {};
};
/// As they lie on this machine.
Origin local_logs(std::vector<std::filesystem::path> logs);
/// What gives the bytes of a file.
using Arrivals = std::function<std::shared_ptr<log::Arrival>(const std::filesystem::path&)>;
Origin arriving_logs(std::vector<std::filesystem::path> logs, const Arrivals& arrivals,
                     std::vector<Origin::Renamed> renamed);

struct Counted {
  std::uint64_t parts = 0;  ///< of the shard
  std::uint64_t kept = 0;   ///< that the file had already
};

/// Counts the parts of logs that a shard has, and appends each to the file as soon as it is
/// counted. Those that the file has already are not counted again, so that a job that was stopped
/// goes on. Throws log::BadInput; parts that were counted before stay.
Counted count_parts(const Origin& origin, const frames::Selection& selection, Shard shard,
                    const std::filesystem::path& file, frames::Notes& notes,
                    const frames::Progress& progress);

/// The parts of logs, one log after the other.
frames::Parts parts_of(const Origin& origin, const frames::Selection& selection);

}  // namespace halfscope::analyzers::count
