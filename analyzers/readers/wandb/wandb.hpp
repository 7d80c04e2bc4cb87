// SPDX-License-Identifier: Apache-2.0
// Weights & Biases histories as users export them: JSON of run.scan_history() or run.history().
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::wandb {

bool is_wandb(const log::OpenPath& log);

/// As Kind::read: a file, or a folder of files of one run.
void read_wandb(const log::OpenPath& log, const common::TimelineSelection& selection,
                const frames::Visitor& visit, frames::Notes& notes,
                const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::wandb
