// SPDX-License-Identifier: Apache-2.0
// CSV files of the training monitor of Ascend's msprobe.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::statistics {

bool is_msprobe(const log::OpenPath& log);

/// As Kind::read: a file, a folder of files, or a folder with a folder for each rank.
void read_msprobe(const log::OpenPath& log, const common::TimelineSelection& selection,
                  const frames::Visitor& visit, frames::Notes& notes,
                  const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::statistics
