// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a run log's sampled steps.
#pragma once

#include "analyzers/frames/whole_tensors.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::run_log {

/// Calls `visit` for every selected sampled step of a run log: with those ranks that have it,
/// ascending. Throws log::BadInput.
void visit_sampled_ranks(const log::OpenPath& log, const frames::Selection& selection,
                         const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress);

/// The same for each rank alone.
void visit_run_samples(const log::OpenPath& log, const frames::Selection& selection,
                       const frames::WholeStepVisitor& visit, frames::Notes& notes,
                       const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::run_log
