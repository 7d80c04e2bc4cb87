// SPDX-License-Identifier: Apache-2.0
// trainer_state.json, in which Hugging Face's Trainer keeps what it logged.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::metrics {

bool is_trainer_state(const log::OpenPath& log);

/// As Kind::read: a file, the folder of a checkpoint, or the folder of a run with its checkpoints.
void read_trainer_state(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::metrics
