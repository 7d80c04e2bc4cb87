// SPDX-License-Identifier: Apache-2.0
// Statistics that Transformer Engine's debug features log to text files by nvidia-dlfw-inspect.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::statistics {

bool is_te_statistics(const log::OpenPath& log);

/// As Kind::read: a file, or the folder of a run with a file for each rank.
void read_te_statistics(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::statistics
