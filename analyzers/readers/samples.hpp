// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a log, for analyzers that must see values.
#pragma once

#include <filesystem>

#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers {

/// Calls `visit` for every selected whole tensor of one log, step by step; of a log of several
/// ranks, every rank's where the role is sharded, rank 0's where not. Holds one tensor at a time.
/// A log without whole tensors has none to visit. Throws log::BadInput.
void for_each_whole_tensor(const std::filesystem::path& log, const Selection& selection,
                           const WholeVisitor& visit, Notes& notes, const Progress& progress = {});

/// Calls `visit` for every selected step (--tensor is not looked at), by step, then rank. The same
/// contract as above.
void for_each_whole_step(const std::filesystem::path& log, const Selection& selection,
                         const WholeStepVisitor& visit, Notes& notes,
                         const Progress& progress = {});

}  // namespace halfscope::analyzers
