// SPDX-License-Identifier: Apache-2.0
// dump.json of Ascend's msprobe: statistics of the inputs and outputs of every module or operation.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::statistics {

bool is_msprobe_dump(const log::OpenPath& log);

/// As Kind::read: a file, the folder of a rank or of a step, or the folder of all steps.
void read_msprobe_dump(const log::OpenPath& log, const common::TimelineSelection& selection,
                       const frames::Visitor& visit, frames::Notes& notes,
                       const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::statistics
