// SPDX-License-Identifier: Apache-2.0
// Weights & Biases histories as users export them: JSON of run.scan_history() or run.history().
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::wandb {

/// A file, or a folder of files of one run.
common::Recognises is_wandb;
common::Reads read_wandb;

}  // namespace halfscope::analyzers::readers::wandb
