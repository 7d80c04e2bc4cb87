// SPDX-License-Identifier: Apache-2.0
// One step of a series as it is put together, of the tables and of the scalars of every rank.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::replay {

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

/// The largest unscaled magnitude; infinity and NaN are themselves.
struct LargestMagnitudes {
  std::optional<double> all;      ///< over gradients, but for those in `sums`
  std::optional<double> weights;  ///< over those of weights, once microbatches are added up
  std::optional<double> sums;     ///< the same of finite ones, until take_sums()

  void see(double magnitude) { all = all ? larger(*all, magnitude) : magnitude; }
  void see(log::Role role, double magnitude);
  /// Adds `sums` to `all`, unless the parts alone count.
  void take_sums(bool parts_count);
};

/// One attempt of a step that was tried more than once, over the ranks.
struct SeriesAttempt {
  LargestMagnitudes largest;
  std::optional<double> scale;   ///< of the first rank that says it
  OfGradients<unsigned> told{};  ///< ranks that tell
};

struct SeriesStep {
  LargestMagnitudes largest;
  LargestMagnitudes wide;             ///< finite gradients computed in binary32, not in `largest`
  std::optional<double> table_scale;  ///< that its gradients carry
  /// Infinite gradients are among values that are binary16's as they are, recorded as unscaled.
  bool infinite_unscaled = false;
  std::optional<double> loss_scale;  ///< of the first rank that says it
  /// Over the ranks that say it.
  double least_scale = std::numeric_limits<double>::infinity(), most_scale = 0;
  std::optional<bool> found_inf;  ///< of any rank
  unsigned told_found_inf = 0;    ///< ranks that say it
  /// The largest of microbatches that carry a scale which their rank does not say.
  std::optional<double> scaled_microbatches;
  OfGradients<unsigned> told, tables;          ///< ranks that tell, and tensors that have a table
  OfGradients<unsigned> microbatches;          ///< ranks that tell of theirs
  std::map<unsigned, SeriesAttempt> attempts;  ///< by number, from 0; some may be missing

  void add_table(log::Role role);
  /// Before anything else is asked. in_fp32: whether FP32 adds up the weight gradients of
  /// microbatches; then these count alone where all of so many ranks tell them.
  void take_sums(bool in_fp32, unsigned ranks);
  /// What a 16-bit run keeps in binary32, as batch normalization's parameters, does not overflow
  /// where its other gradients do: there it counts only where nothing else is known.
  void take_wide(bool any_narrow);
  /// Of one rank. microbatch_scale: what the values of microbatches carry; empty: not known.
  void add(const log::StepScalars& scalars, std::optional<double> microbatch_scale,
           RecordedScalars& recorded);
  /// What carries a scale that was not known when it was added.
  void unscale_microbatches(std::optional<double> scale);
  /// Whether microbatches that other steps have were not recorded, on all of so many ranks. One
  /// microbatch on one rank is all that was added up. The largest gradient of activations is one
  /// over all microbatches.
  bool lacks_microbatches(const RecordedScalars& recorded, unsigned ranks) const;

 private:
  void add_microbatches(const log::StepScalars& scalars, std::optional<double> scale);
  void add_attempts(const log::StepScalars& scalars, RecordedScalars& recorded);
};

}  // namespace halfscope::analyzers::replay
