// SPDX-License-Identifier: Apache-2.0
// The whole tensors of a log, for analyzers that must see values.
#pragma once

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::readers {

/// Calls `visit` for every selected step of one log that has whole tensors (--tensor is not looked
/// at), by step, then rank. Loads no tensor. Throws log::BadInput.
void for_each_whole_step(const Log& log, const frames::Selection& selection,
                         const frames::WholeStepVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress = {});

/// The same, but the ranks of a run at one step together.
void for_each_whole_step_of_ranks(const Log& log, const frames::Selection& selection,
                                  const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                                  const frames::Progress& progress = {});

}  // namespace halfscope::analyzers::readers
