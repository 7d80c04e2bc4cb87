// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a run log's sampled steps.
#pragma once

#include "analyzers/frames/whole_tensors.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::run_log {

/// Calls `visit` for every selected sampled step of a run log, or of its ranks: by step, then rank.
/// Throws log::BadInput.
void visit_run_samples(const log::OpenPath& log, const frames::Selection& selection,
                       const frames::WholeStepVisitor& visit, frames::Notes& notes,
                       const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::run_log
