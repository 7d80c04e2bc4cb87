// SPDX-License-Identifier: Apache-2.0
// Run logs of a few steps, read as series.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/logs.hpp"
#include "analyzers/replay/replay.hpp"
#include "analyzers/replay/step_series.hpp"
#include "analyzers/series_in.hpp"

namespace halfscope::analyzers {

using test::record_of;
using test::TempFolder;
using Scalars = std::vector<log::StepScalars>;
using Records = std::vector<log::TensorRecord>;
using Steps = std::vector<std::int64_t>;

inline constexpr double kInf = std::numeric_limits<double>::infinity();

inline log::StepScalars step(std::int64_t number, std::optional<double> weights,
                             std::optional<double> activations = {},
                             std::optional<double> scale = 1024.0) {
  log::StepScalars s;
  s.step = number;
  s.max_abs_weight_grad = weights;
  s.max_abs_activation_grad = activations;
  s.loss_scale = scale;
  s.found_inf = false;
  return s;
}

inline log::Manifest manifest_of(log::ScaleState gradients) {
  log::Manifest manifest;
  manifest.gradients = gradients;
  return manifest;
}

/// A run log of these ranks, read.
inline replay::StepSeries read_ranks(const std::vector<Scalars>& ranks, const Records& records = {},
                                     log::Manifest manifest = {},
                                     const frames::Selection& selection = {},
                                     frames::Notes* notes = nullptr) {
  const TempFolder folder;
  if (ranks.size() > 1) manifest.world_size = static_cast<int>(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    manifest.rank = static_cast<int>(rank);
    const std::string name = ranks.size() == 1 ? "run" : "run/rank-000" + std::to_string(rank);
    log::RunLogWriter writer(folder / name, manifest);
    for (const auto& s : ranks[rank]) writer.write(s);
    for (const auto& r : records) writer.write(r);
  }
  return series_in(folder / "run", selection, notes);
}

inline replay::StepSeries read(const Scalars& scalars, const Records& records = {},
                               log::Manifest manifest = {},
                               const frames::Selection& selection = {}) {
  return read_ranks({scalars}, records, std::move(manifest), selection);
}

inline replay::Trace at_scale(const replay::StepSeries& series, const std::string& scale) {
  return replay::replay(policy::make("static,scale=" + scale), series);
}

inline log::TensorRecord computed_in(Dtype dtype, log::TensorRecord record) {
  record.computed_dtype = dtype;
  return record;
}

inline log::StepScalars retried(std::int64_t number, const std::vector<double>& attempts,
                                double first_scale) {
  log::StepScalars s = step(number, attempts.back());
  double scale = first_scale;
  for (std::size_t i = 0; i < attempts.size(); ++i, scale /= 2) {
    const std::string end = "/attempt-" + std::to_string(i);
    s.more["max_abs/weight_grad" + end] = attempts[i];
    s.more["loss_scale" + end] = scale;
    s.loss_scale = scale;
  }
  return s;
}

}  // namespace halfscope::analyzers
