// SPDX-License-Identifier: Apache-2.0
// How much a log tells of a step's gradients.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analyzers/replay/step_series_step.hpp"

namespace halfscope::analyzers::replay {

/// Ranks that have to tell, of each role. Weights' gradients are the same on every rank once they
/// are added up, unless the manifest says that each rank has a part; activations' never are.
OfGradients<unsigned> ranks_wanted(unsigned folders, const std::optional<log::Manifest>& manifest);

/// What of a log is known where.
struct Recorded {
  RecordedScalars scalars;
  OfGradients<unsigned> tables;          ///< tensors that have any
  OfGradients<unsigned> ranks = {1, 1};  ///< that have to tell

  /// Whether gradients of weights are told apart anywhere.
  bool has_weights() const { return scalars.max_abs.weights || tables.weights != 0; }
  /// Whether all weight gradients of a step are known: by the scalars of every rank, or by tables
  /// of all tensors. Of several ranks tables tell only what rank 0 had.
  bool all_weights(const SeriesStep& step) const;
  /// Whether some gradient of a step is not known.
  bool partial(const SeriesStep& step) const;
  bool partial(const SeriesAttempt& attempt) const;
};

/// The largest scale at which the run may have applied infinities: above it, a step that it did not
/// skip had finite weight gradients. -1: at every scale. Empty: it is not known to test anything.
std::optional<double> untested_to(const std::optional<log::Manifest>& manifest,
                                  const std::map<std::int64_t, SeriesStep>& steps);

}  // namespace halfscope::analyzers::replay
