// SPDX-License-Identifier: Apache-2.0
// Reads the frames, peaks and scalars of one run log folder.
#pragma once

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::run_log {

/// Reads one run log. Same contract as for_each_frame().
void read_run_log(const log::RunLog& log, const frames::Selection& selection,
                  const frames::Visitor& visit, frames::Notes& notes,
                  const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::run_log
