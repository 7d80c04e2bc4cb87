// SPDX-License-Identifier: Apache-2.0
// TensorBoard folders and event files that other tools wrote (docs/logs.md).
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensorboard {

/// Whether a file begins with a record of an event, or a folder holds such files.
bool is_tensorboard(const log::OpenPath& log);

/// As for_each_frame. A folder's files are one run. Folders in it are other runs: one is
/// named, none is added.
void read_tensorboard(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::tensorboard
