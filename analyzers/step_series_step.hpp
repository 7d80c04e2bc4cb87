// SPDX-License-Identifier: Apache-2.0
// One step of a series as it is put together, of the tables and of the scalars of every rank.
// Private to the series.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyzers/source.hpp"

namespace halfscope::analyzers {

/// The larger of two magnitudes; NaN and infinity stay.
double larger(double a, double b);

/// The roles of gradients that a policy looks at: what is said of each.
template <class T>
struct OfGradients {
  T weights{}, activations{};
};

/// Of a log: which scalars any of its steps has, on any rank. Where a step has not, something is
/// not known of it.
struct RecordedScalars {
  OfGradients<bool> max_abs, microbatches;
};

/// One attempt of a step that was tried more than once, over the ranks.
struct SeriesAttempt {
  double max_abs = 0;            ///< unscaled
  std::optional<double> scale;   ///< of the first rank that says it
  OfGradients<unsigned> told{};  ///< ranks that tell
};

struct SeriesStep {
  std::optional<double> max_abs;      ///< unscaled, over gradients; infinity and NaN are themselves
  std::optional<double> wide;         ///< the largest finite one of gradients computed in binary32
  std::optional<double> table_scale;  ///< that its gradients carry
  std::optional<double> loss_scale;   ///< of the first rank that says it
  double most_scale = 0;              ///< over the ranks that say it
  std::optional<bool> found_inf;      ///< of any rank
  /// The largest of microbatches that carry a scale which their rank does not say.
  std::optional<double> scaled_microbatches;
  OfGradients<unsigned> told, tables;  ///< ranks that tell, and tensors that have a table
  OfGradients<bool> microbatches;
  std::vector<SeriesAttempt> attempts;

  void see(double magnitude) { max_abs = max_abs ? larger(*max_abs, magnitude) : magnitude; }
  void add_table(log::Role role);
  /// Of one rank. microbatch_scale: what the values of microbatches carry; empty: not known.
  void add(const log::StepScalars& scalars, std::optional<double> microbatch_scale,
           RecordedScalars& recorded);
  /// What carries a scale that was not known when it was added.
  void unscale_microbatches(std::optional<double> scale);
  /// Whether microbatches of one role were recorded, and those of another not, which other steps
  /// have. A step with none had one batch.
  bool lacks_microbatches(const RecordedScalars& recorded) const;

 private:
  void add_microbatches(const log::StepScalars& scalars, std::optional<double> scale);
  void add_attempts(const log::StepScalars& scalars, RecordedScalars& recorded);
};

}  // namespace halfscope::analyzers
