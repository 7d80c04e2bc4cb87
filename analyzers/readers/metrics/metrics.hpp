// SPDX-License-Identifier: Apache-2.0
// The readers of files in which training loops keep their scalars. is_X() tells by the content of a
// file, or of the first files of a folder; read_X() is as Kind::read.
#pragma once

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::metrics {

/// Tables with a column of steps and one for each metric: Lightning's metrics.csv, charts that W&B
/// exports.
bool is_metrics_csv(const log::OpenPath& log);
void read_metrics_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                      const frames::Visitor& visit, frames::Notes& notes,
                      const frames::Progress& progress);

/// The CSV files of DeepSpeed's monitor: one metric a file, "step,NAME" and then a row a step.
bool is_deepspeed_csv(const log::OpenPath& log);
void read_deepspeed_csv(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress);

/// The folders of MLflow's file store: a run, its metrics, one file, or what holds a run.
bool is_mlflow(const log::OpenPath& log);
void read_mlflow(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress);

/// trainer_state.json, in which Hugging Face's Trainer keeps what it logged: the file, a
/// checkpoint, or a folder of the checkpoints of one run.
bool is_trainer_state(const log::OpenPath& log);
void read_trainer_state(const log::OpenPath& log, const common::TimelineSelection& selection,
                        const frames::Visitor& visit, frames::Notes& notes,
                        const frames::Progress& progress);

}  // namespace halfscope::analyzers::readers::metrics
