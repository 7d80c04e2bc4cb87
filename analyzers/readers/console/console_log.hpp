// SPDX-License-Identifier: Apache-2.0
// Reads what training programs print: losses, loss scales and skipped steps.
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::console {

/// Returns true if a file, or one in a folder, is text with lines of a training run. Never throws.
bool is_console_log(const log::OpenPath& log);

/// Reads a console log twice: first to learn which lines have steps, then to report them to
/// `visit`.
void read_console_log(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::console
