// SPDX-License-Identifier: Apache-2.0
// A file of counted parts as a log: FILE, or FILE/LOG where it holds several.
#pragma once

#include <string>
#include <vector>

#include "analyzers/frames/part.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::record {

bool is_record(const log::OpenPath& log);

/// The logs of a file, each as a path of its own; of one log, or of what is no such file, the path.
std::vector<std::filesystem::path> logs_in(const log::OpenPath& path);

frames::Parts record_parts(const log::OpenPath& log, const frames::Selection& selection);

/// As for_each_frame.
void read_record(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::record
