// SPDX-License-Identifier: Apache-2.0
// Weights & Biases histories as users export them: JSON of run.scan_history() or run.history().
#pragma once

#include <filesystem>

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::readers {

bool is_wandb(const std::filesystem::path& log);

/// As Kind::read: a file, or a folder of files of one run.
void read_wandb(const std::filesystem::path& log, const TimelineSelection& selection,
                const analyzers::Visitor& visit, analyzers::Notes& notes,
                const analyzers::Progress& progress);

}  // namespace halfscope::readers
