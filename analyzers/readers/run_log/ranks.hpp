// SPDX-License-Identifier: Apache-2.0
// A run of several ranks as one: one folder a rank.
#pragma once

#include "analyzers/frames/part.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::run_log {

/// The ranks of a folder, or the one of a run log, which is a rank of the folder above where its
/// name says so ("rank-0003").
frames::Parts rank_parts(const log::OpenPath& log, const frames::Selection& selection);

/// Frames of the ranks of one log: tables are added for roles that rank 0's manifest calls sharded;
/// for the others rank 0 is taken, and a difference between ranks is noted.
void join_ranks(const frames::Parts& ranks, const frames::Visitor& visit, frames::Notes& notes,
                const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::run_log
