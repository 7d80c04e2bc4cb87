// SPDX-License-Identifier: Apache-2.0
// The CSV files of DeepSpeed's monitor: one metric a file, "step,NAME" and then a row a step.
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::readers {

bool is_deepspeed_csv(const std::filesystem::path& log);

void read_deepspeed_csv(const std::filesystem::path& log, const TimelineSelection& selection,
                        const analyzers::Visitor& visit, analyzers::Notes& notes,
                        const analyzers::Progress& progress);

}  // namespace halfscope::readers
