// SPDX-License-Identifier: Apache-2.0
// How completely a log records a step's gradients.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analyzers/replay/step_series_step.hpp"

namespace halfscope::analyzers::replay {

/// Returns the number of ranks that must have recorded each role. Summed weight gradients are equal
/// on all ranks, unless the manifest says that each rank has a part; activation gradients never
/// are.
OfGradients<unsigned> ranks_wanted(unsigned folders, const std::optional<log::Manifest>& manifest);

/// The gradients that a log records at any step.
struct Recorded {
  RecordedScalars scalars;
  OfGradients<unsigned> tables;          ///< number of tensors that have histograms
  OfGradients<unsigned> ranks = {1, 1};  ///< number of ranks that must have recorded

  /// Returns true if the log records weight gradients separately at some step.
  bool has_weights() const { return scalars.max_abs.weights || tables.weights != 0; }
  /// Returns true if all weight gradients of a step are known: from the scalars of every rank, or
  /// from histograms of all tensors. With several ranks the histograms cover only rank 0.
  bool all_weights(const SeriesStep& step) const;
  /// Returns true if some gradient of a step, or of an attempt, is unknown.
  bool partial(const SeriesStep& step) const;
  bool partial(const SeriesAttempt& attempt) const;
};

/// Returns the largest scale at which the run may have applied infinities; above it, steps that
/// were not skipped had finite weight gradients. -1: at every scale. Empty: the run is not known to
/// test.
std::optional<double> untested_to(const std::optional<log::Manifest>& manifest,
                                  const std::map<std::int64_t, SeriesStep>& steps);

}  // namespace halfscope::analyzers::replay
