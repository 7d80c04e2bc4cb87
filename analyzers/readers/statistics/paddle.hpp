// SPDX-License-Identifier: Apache-2.0
// Lines that Paddle's tensor checker (paddle.amp.debugging) prints of every operator's outputs.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::statistics {

bool is_paddle(const log::OpenPath& log);

/// As Kind::read: what a run printed, or the output_dir with a file for each worker.
void read_paddle(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::statistics
