// SPDX-License-Identifier: Apache-2.0
// The names of the kinds of logs, as `halfscope logs --kinds` lists them.
#pragma once

#include <array>
#include <string_view>

namespace halfscope::analyzers::readers::common {

/// In the order of kinds().
inline constexpr std::array<std::string_view, 17> kKindNames = {
    "folders of a run log for each rank",
    "run logs (a folder with run.json)",
    "records of 'halfscope count'",
    "TensorBoard event files",
    "Weights & Biases histories (JSON)",
    "Transformer Engine statistics logs",
    "lines of Paddle's tensor checker",
    "msprobe monitor CSV files",
    "msprobe dumps (dump.json)",
    "Hugging Face trainer states (trainer_state.json)",
    "CSV files of metrics by step (Lightning's metrics.csv)",
    "MLflow metrics",
    "DeepSpeed's CSV metrics",
    "console logs of training programs",
    "folders of tensor files",
    "folders of files of torch.save",
    "safetensors, NPY, NPZ and torch.save files",
};

/// The end of a message that a file or folder is not a log.
inline constexpr const char* kKindsListed = "; 'halfscope logs --kinds' lists what it reads";

}  // namespace halfscope::analyzers::readers::common
