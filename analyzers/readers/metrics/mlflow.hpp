// SPDX-License-Identifier: Apache-2.0
// The folders in which MLflow keeps the metrics of runs.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::metrics {

bool is_mlflow(const log::OpenPath& log);

/// As Kind::read: the folder of a run (mlruns/EXPERIMENT/RUN), its folder of metrics, one metric,
/// or a folder above with one run.
void read_mlflow(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::metrics
