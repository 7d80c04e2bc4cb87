// SPDX-License-Identifier: Apache-2.0
// TensorBoard folders and event files that other tools wrote (docs/logs.md).
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::tensorboard {

/// A file that begins with the record of an event, or a folder that holds such files. The files of
/// a folder are one run. Folders in it are other runs and are not read; a note names one.
common::Recognises is_tensorboard;
common::Reads read_tensorboard;

}  // namespace halfscope::analyzers::readers::tensorboard
