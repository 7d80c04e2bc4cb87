// SPDX-License-Identifier: Apache-2.0
// The parts of records together: sorted, each once.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzers/readers/record/record_file.hpp"

namespace halfscope::analyzers::readers::record {

/// A part, and the file that has it.
struct Placed {
  const RecordFile* file;
  const PartPlace* place;
  const PartHeader& header() const { return place->header; }
};

/// By log and number, in whatever order the files are. The same part of several files is one.
/// problems: gets a line where a part differs from another of its number, and one for each file
/// whose parts of a log were counted with other options than another's, or are of another number of
/// parts.
std::vector<Placed> united(std::span<const RecordFile* const> files,
                           std::vector<std::string>& problems);

}  // namespace halfscope::analyzers::readers::record
