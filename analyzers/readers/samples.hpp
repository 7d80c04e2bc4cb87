// SPDX-License-Identifier: Apache-2.0
// Visits the whole tensors of a log, for analyzers that need every value.
#pragma once

#include <string_view>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/readers/logs.hpp"

namespace halfscope::analyzers::readers {

/// Calls `visit` for every selected step of one log that has whole tensors, ordered by step, then
/// rank. Ignores --tensor and loads no tensor: the visitor does both. Throws log::BadInput.
void for_each_whole_step(const Log& log, const frames::Selection& selection,
                         const frames::WholeStepVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress = {});

/// Same as for_each_whole_step(), but one call of `visit` receives all ranks of a step.
void for_each_whole_step_of_ranks(const Log& log, const frames::Selection& selection,
                                  const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                                  const frames::Progress& progress = {});

/// Throws log::BadInput with the reason why a log cannot be read, or that it is a record without
/// tensors; if neither, with `path: text`.
[[noreturn]] void refuse_without_tensors(const Log& log, const frames::Selection& selection,
                                         std::string_view text);

}  // namespace halfscope::analyzers::readers
