// SPDX-License-Identifier: Apache-2.0
// A run of several ranks as one: one folder a rank.
#pragma once

#include "analyzers/source.hpp"

namespace halfscope::analyzers {

/// Frames of one run log folder; source.cpp.
void read_run_log(const log::RunLog& log, const Selection& selection, const Visitor& visit,
                  Notes& notes, const Progress& progress);

/// Frames of all ranks: tables are added for roles that rank 0's manifest calls sharded; for the
/// others rank 0 is taken, and a difference between ranks is noted.
void read_ranks(const std::vector<std::filesystem::path>& ranks, const Selection& selection,
                const Visitor& visit, Notes& notes, const Progress& progress);

}  // namespace halfscope::analyzers
