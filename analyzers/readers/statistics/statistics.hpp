// SPDX-License-Identifier: Apache-2.0
// Readers of files in which tools write statistics of tensors.
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::statistics {

/// Statistics that Transformer Engine's debug features log to text files by nvidia-dlfw-inspect: a
/// file, or the folder of a run with a file for each rank.
common::Recognises is_te_statistics;
common::Reads read_te_statistics;

/// Lines that Paddle's tensor checker (paddle.amp.debugging) prints for the outputs of each
/// operator: what a run printed, or the output_dir with a file for each worker.
common::Recognises is_paddle;
common::Reads read_paddle;

/// CSV files of the training monitor of Ascend's msprobe: a file, a folder of files, or a folder
/// with a folder for each rank.
common::Recognises is_msprobe;
common::Reads read_msprobe;

/// dump.json of Ascend's msprobe, statistics of the inputs and outputs of each module or operation:
/// a file, the folder of a rank or of a step, or the folder of all steps.
common::Recognises is_msprobe_dump;
common::Reads read_msprobe_dump;

}  // namespace halfscope::analyzers::readers::statistics
