// SPDX-License-Identifier: Apache-2.0
// Text that a program printed while it trained: loss scales and skipped steps, in the forms that
// console_overflows.cpp and console_progress.cpp list.
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::console {

bool is_console_log(const log::OpenPath& log);

void read_console_log(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::console
