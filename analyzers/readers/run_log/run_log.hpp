// SPDX-License-Identifier: Apache-2.0
// Reads run logs: the frames, peaks and scalars of one folder, the whole tensors of its sampled
// steps, and a run of several ranks, each with its own folder, as one log.
#pragma once

#include "analyzers/frames/part.hpp"
#include "analyzers/frames/source.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::run_log {

/// Reads one run log. Same contract as for_each_frame().
void read_run_log(const log::RunLog& log, const frames::Selection& selection,
                  const frames::Visitor& visit, frames::Notes& notes,
                  const frames::Progress& progress);

/// Returns one part for each rank folder in a folder. For a single run log returns one part; if its
/// folder is named like "rank-0003", the part is that rank of the folder above.
frames::Parts rank_parts(const log::OpenPath& log, const frames::Selection& selection);

/// Reads the ranks of one log and calls `visit` as for one log. For roles that rank 0's manifest
/// calls sharded, the histograms of all ranks are added; for other roles, rank 0's histogram is
/// used, and a note says where other ranks differ.
void join_ranks(const frames::Parts& ranks, const frames::Visitor& visit, frames::Notes& notes,
                const frames::Progress& progress);

/// Calls `visit` for every selected sampled step of a run log. One call has all ranks that sampled
/// the step, in ascending order. Throws log::BadInput.
void visit_sampled_ranks(const log::OpenPath& log, const frames::Selection& selection,
                         const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress);

/// Same as visit_sampled_ranks(), but one call of `visit` for each rank of a step.
void visit_run_samples(const log::OpenPath& log, const frames::Selection& selection,
                       const frames::WholeStepVisitor& visit, frames::Notes& notes,
                       const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::run_log
