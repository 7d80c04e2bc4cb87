// SPDX-License-Identifier: Apache-2.0
// Run logs of scalars, and one table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "analyzers/logs.hpp"
#include "analyzers/study.hpp"

namespace halfscope::test {

/// A run log of these largest gradients; loss_scaling as the manifest has it.
inline std::filesystem::path write_run(const std::filesystem::path& folder,
                                       const std::vector<double>& peaks,
                                       nlohmann::json loss_scaling) {
  log::Manifest manifest;
  if (!loss_scaling.is_null()) (*manifest.about)["loss_scaling"] = std::move(loss_scaling);
  log::RunLogWriter writer(folder, manifest);
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    log::StepScalars scalars;
    scalars.step = static_cast<std::int64_t>(i);
    scalars.max_abs_weight_grad = peaks[i];
    writer.write(scalars);
  }
  const auto largest = static_cast<float>(peaks.front());
  writer.write(record_of("weight_grad/w", 0, {largest, largest / 4}));
  return folder;
}

/// Everything, the replays too.
inline analyzers::Study study_of(const std::vector<std::filesystem::path>& logs) {
  using namespace analyzers;
  return study(analyze(logs, {}, {}, {.series = true}, {}), {}, {}, replay::PolicyOptions());
}

}  // namespace halfscope::test
