// SPDX-License-Identifier: Apache-2.0
// Visits the whole tensors of a run log's sampled steps.
#pragma once

#include "analyzers/frames/whole_tensors.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::run_log {

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
