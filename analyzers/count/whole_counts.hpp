// SPDX-License-Identifier: Apache-2.0
// What whole tensors tell beyond their tables: exact sums, what becomes of weight updates,
// and how long the rows of queries and keys are.
#pragma once

#include "analyzers/frames/part.hpp"
#include "analyzers/frames/whole_counts.hpp"

namespace halfscope::analyzers::count {

/// Counts the whole tensors of a part, step by step: without `visit.sums` no sums. Holds one
/// pair of tensors at a time.
void count_whole(const frames::Part& part, const frames::Selection& selection,
                 const frames::WholeCountsVisitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

}  // namespace halfscope::analyzers::count
