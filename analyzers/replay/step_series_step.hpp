// SPDX-License-Identifier: Apache-2.0
// One step of a series while it is collected from histograms and from the scalars of every rank.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::replay {

/// Returns the larger of two magnitudes; NaN if one is NaN.
double larger(double a, double b);

/// A value for each role of gradients that policies look at.
template <class T>
struct OfGradients {
  T weights{}, activations{};
};

/// Scalars that any step of the log has, on any rank. A step without them has unknown gradients.
struct RecordedScalars {
  OfGradients<bool> max_abs, microbatches;
};

/// Largest unscaled magnitudes, which may be infinite or NaN.
struct LargestMagnitudes {
  std::optional<double> all;      ///< over all gradients, except those in `sums`
  std::optional<double> weights;  ///< over weight gradients, after microbatches are summed
  std::optional<double> sums;     ///< over finite weight gradients, until take_sums()

  void see(double magnitude) { all = all ? larger(*all, magnitude) : magnitude; }
  void see(log::Role role, double magnitude);
  /// Adds `sums` to `all`, unless the microbatches alone count (parts_count); then clears `sums`.
  void take_sums(bool parts_count);
};

/// One attempt of a step that was tried more than once, over all ranks.
struct SeriesAttempt {
  LargestMagnitudes largest;
  std::optional<double> scale;   ///< from the first rank that recorded it
  OfGradients<unsigned> told{};  ///< number of ranks that recorded magnitudes
};

struct SeriesStep {
  LargestMagnitudes largest;
  LargestMagnitudes wide;             ///< finite gradients computed in binary32; not in `largest`
  std::optional<double> table_scale;  ///< loss scale that the values of histograms carry
  /// Infinite gradients were recorded as unscaled, with values that binary16 holds unchanged.
  bool infinite_unscaled = false;
  std::optional<double> loss_scale;  ///< from the first rank that recorded it
  /// Smallest and largest loss scale over the ranks that recorded it.
  double least_scale = std::numeric_limits<double>::infinity(), most_scale = 0;
  std::optional<bool> found_inf;  ///< true if any rank found infinities; empty if none says
  unsigned told_found_inf = 0;    ///< number of ranks that recorded found_inf
  /// Largest magnitude of microbatches whose loss scale is unknown; still scaled.
  std::optional<double> scaled_microbatches;
  OfGradients<unsigned> told, tables;          ///< ranks with magnitudes, tensors with histograms
  OfGradients<unsigned> microbatches;          ///< ranks that recorded microbatches
  std::map<unsigned, SeriesAttempt> attempts;  ///< by number, from 0; some may be missing

  void add_table(log::Role role);
  /// Must be called before the step is evaluated. in_fp32: FP32 sums the weight gradients of
  /// microbatches; then only the microbatches count, if all `ranks` recorded them.
  void take_sums(bool in_fp32, unsigned ranks);
  /// Adds `wide` to `largest`. Gradients that a 16-bit run computes in binary32, as for batch
  /// normalization, do not overflow with the others; if any_narrow, they count only without the
  /// others.
  void take_wide(bool any_narrow);
  /// Adds the scalars of one rank. microbatch_scale: its microbatches' loss scale; empty: unknown.
  void add(const log::StepScalars& scalars, std::optional<double> microbatch_scale,
           RecordedScalars& recorded);
  /// Adds microbatches whose scale was unknown before; ignores an empty or unusable `scale`.
  void unscale_microbatches(std::optional<double> scale);
  /// Returns true if microbatches that other steps have were not recorded on all `ranks`. On one
  /// rank, a step with weight gradients and no microbatches had only one. The largest activation
  /// gradient of a step covers all its microbatches.
  bool lacks_microbatches(const RecordedScalars& recorded, unsigned ranks) const;

 private:
  void add_microbatches(const log::StepScalars& scalars, std::optional<double> scale);
  void add_attempts(const log::StepScalars& scalars, RecordedScalars& recorded);
};

}  // namespace halfscope::analyzers::replay
