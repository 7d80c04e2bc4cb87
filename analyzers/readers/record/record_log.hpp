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

/// What the logs of a record were called where they were counted: at least one.
/// What of a record's file is damaged or cut, one line each; nothing of other logs.
std::vector<std::string> damage_of(const log::OpenPath& log);

std::vector<std::string> logs_in(const log::OpenPath& record);
/// A record's path as that of one of its logs.
std::filesystem::path path_of(const log::OpenPath& record, const std::string& log);

frames::Parts record_parts(const log::OpenPath& log, const frames::Selection& selection);

/// As for_each_frame.
void read_record(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::record
