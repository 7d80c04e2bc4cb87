// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a log, for analyzers that must see values.
#pragma once

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::readers {

/// Calls `visit` for every selected whole tensor of one log, step by step; of a log of several
/// ranks, every rank's where the role is sharded, rank 0's where not. Holds one tensor at a time.
/// A log without whole tensors has none to visit. Throws log::BadInput.
void for_each_whole_tensor(const Log& log, const frames::Selection& selection,
                           const frames::WholeVisitor& visit, frames::Notes& notes,
                           const frames::Progress& progress = {});

/// Calls `visit` for every selected step (--tensor is not looked at), by step, then rank. The same
/// contract as above.
void for_each_whole_step(const Log& log, const frames::Selection& selection,
                         const frames::WholeStepVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::readers
