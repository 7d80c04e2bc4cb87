// SPDX-License-Identifier: Apache-2.0
// Readers of files in which training loops keep their scalars.
#pragma once

#include "analyzers/readers/common/timeline.hpp"

namespace halfscope::analyzers::readers::metrics {

/// CSV tables with a column of steps and a column for each metric: Lightning's metrics.csv, charts
/// that W&B exports.
common::Recognises is_metrics_csv;
common::Reads read_metrics_csv;

/// The CSV files of DeepSpeed's monitor: each has the columns "step" and one metric, and a row for
/// each step.
common::Recognises is_deepspeed_csv;
common::Reads read_deepspeed_csv;

/// MLflow's file store: one metric, a folder of metrics, a run, or a folder above one run.
common::Recognises is_mlflow;
common::Reads read_mlflow;

/// The trainer_state.json of Hugging Face's Trainer: the file, a checkpoint, or a folder of the
/// checkpoints of one run.
common::Recognises is_trainer_state;
common::Reads read_trainer_state;

}  // namespace halfscope::analyzers::readers::metrics
