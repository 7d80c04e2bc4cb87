// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a run log's sampled steps.
#pragma once

#include <filesystem>

#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers {

/// Calls `visit` for every selected sampled step of a run log, or of its ranks: by step, then rank.
/// Throws log::BadInput.
void visit_run_samples(const std::filesystem::path& log, const Selection& selection,
                       const WholeStepVisitor& visit, Notes& notes, const Progress& progress);

}  // namespace halfscope::analyzers
