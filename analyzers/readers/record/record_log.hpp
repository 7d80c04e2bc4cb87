// SPDX-License-Identifier: Apache-2.0
// Reads a record (.hst) as a log: FILE if it holds one log, FILE/LOG if it holds several.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzers/frames/part.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/record/record_file.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::record {

/// Returns true if a path is a record, or names a log in a record.
bool is_record(const log::OpenPath& log);

/// Returns a line for each damaged or cut part of a record. Empty if none is, or for other logs.
std::vector<std::string> damage_of(const log::OpenPath& log);

/// Returns the names with which the logs in a record were counted, at least one. Throws
/// log::BadInput if it is not a record or holds no complete part.
std::vector<std::string> logs_in(const log::OpenPath& record);
/// Returns the path FILE/LOG of a log in a record. Throws log::BadInput if it is not a record.
std::filesystem::path path_of(const log::OpenPath& record, const std::string& log);

/// Returns the parts of the log that the path names, or of all logs in the record. Throws
/// log::BadInput if it is not a record or its parts do not belong together, and
/// frames::InputNeedsOption if the selection has an option that only works when the log is counted.
frames::Parts record_parts(const log::OpenPath& log, const frames::Selection& selection);

/// Reads one log of a record. Same contract as for_each_frame().
void read_record(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

/// A part, and the file that holds it. Both must outlive this object.
struct Placed {
  const RecordFile* file;
  const PartPlace* place;
  const PartHeader& header() const { return place->header; }
};

/// Returns the parts of all files, each once, sorted by log and index; the order of the files does
/// not matter. Appends a line to `problems` for each part that differs from a part with the same
/// log and index, and one for each file and log whose parts have other options or another number of
/// parts than those of another file. Such parts are left out of the result.
std::vector<Placed> united(std::span<const RecordFile* const> files,
                           std::vector<std::string>& problems);

}  // namespace halfscope::analyzers::readers::record
