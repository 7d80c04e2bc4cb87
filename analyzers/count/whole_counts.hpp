// SPDX-License-Identifier: Apache-2.0
// Counts from whole tensors: exact sums, lost weight updates, row norms of queries and keys.
#pragma once

#include "analyzers/frames/part.hpp"
#include "analyzers/frames/whole_counts.hpp"

namespace halfscope::analyzers::count {

/// Counts the whole tensors of a part, step by step. Counts no sums if `visit.sums` is empty. Holds
/// one pair of tensors in memory at a time.
void count_whole(const frames::Part& part, const frames::Selection& selection,
                 const frames::WholeCountsVisitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

}  // namespace halfscope::analyzers::count
