// SPDX-License-Identifier: Apache-2.0
// A run of several ranks, each with its own run log folder, read as one log.
#pragma once

#include "analyzers/frames/part.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::run_log {

/// Returns one part for each rank folder in a folder. For a single run log returns one part; if its
/// folder is named like "rank-0003", the part is that rank of the folder above.
frames::Parts rank_parts(const log::OpenPath& log, const frames::Selection& selection);

/// Reads the ranks of one log and calls `visit` as for one log. For roles that rank 0's manifest
/// calls sharded, the histograms of all ranks are added; for other roles, rank 0's histogram is
/// used, and a note says where other ranks differ.
void join_ranks(const frames::Parts& ranks, const frames::Visitor& visit, frames::Notes& notes,
                const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::run_log
