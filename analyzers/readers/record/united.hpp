// SPDX-License-Identifier: Apache-2.0
// Joins the parts of several records.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzers/readers/record/record_file.hpp"

namespace halfscope::analyzers::readers::record {

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
