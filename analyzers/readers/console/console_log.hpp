// SPDX-License-Identifier: Apache-2.0
// What was printed while a run trained: loss scales and skipped steps of DeepSpeed, Apex, fairseq
// and Megatron-LM.
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::readers {

bool is_console_log(const std::filesystem::path& log);

void read_console_log(const std::filesystem::path& log, const TimelineSelection& selection,
                      const analyzers::Visitor& visit, analyzers::Notes& notes,
                      const analyzers::Progress& progress);

}  // namespace halfscope::readers
