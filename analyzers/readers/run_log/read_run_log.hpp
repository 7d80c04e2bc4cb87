// SPDX-License-Identifier: Apache-2.0
// Frames, peaks and scalars of one run log folder.
#pragma once

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers {

/// As readers::for_each_frame.
void read_run_log(const log::RunLog& log, const Selection& selection, const Visitor& visit,
                  Notes& notes, const Progress& progress);

}  // namespace halfscope::analyzers
