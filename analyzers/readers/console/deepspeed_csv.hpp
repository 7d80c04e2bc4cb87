// SPDX-License-Identifier: Apache-2.0
// The CSV files of DeepSpeed's monitor: one metric a file, "step,NAME" and then a row a step.
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::console {

bool is_deepspeed_csv(const log::OpenPath& log);

void read_deepspeed_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::console
