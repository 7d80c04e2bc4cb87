// SPDX-License-Identifier: Apache-2.0
// Tables of scalars by step, as Lightning's CSVLogger writes metrics.csv.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::metrics {

bool is_metrics_csv(const log::OpenPath& log);

/// As Kind::read: a file, its folder (version_0), or the folder above with one such folder.
void read_metrics_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::metrics
