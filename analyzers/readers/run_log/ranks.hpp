// SPDX-License-Identifier: Apache-2.0
// A run of several ranks as one: one folder a rank.
#pragma once

#include <cstddef>
#include <functional>

#include "analyzers/frames/source.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::run_log {

/// Frames of all ranks of a folder: tables are added for roles that rank 0's manifest calls
/// sharded; for the others rank 0 is taken, and a difference between ranks is noted.
void read_ranks(const log::OpenPath& log, const frames::Selection& selection,
                const frames::Visitor& visit, frames::Notes& notes,
                const frames::Progress& progress);

/// Ranks of a log: 0 where it is no folder of rank folders, or where ranks are missing, so that no
/// sum over them is known.
std::size_t rank_count(const log::OpenPath& log);

/// Every selected frame of every rank, rank by rank, before anything is added. One table at a time.
void for_each_rank_frame(const log::OpenPath& log, const frames::Selection& selection,
                         const std::function<void(std::size_t rank, frames::Frame&&)>& visit);

}  // namespace halfscope::analyzers::readers::run_log
