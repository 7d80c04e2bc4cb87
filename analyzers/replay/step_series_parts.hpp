// SPDX-License-Identifier: Apache-2.0
// The parts of a series while it is collected: one step, from histograms and from the scalars of
// every rank; how completely the log records it; the values that each scale flushes; and which
// infinities a loss scale may have made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/frames/microbatches.hpp"
#include "analyzers/replay/step_series.hpp"
#include "analyzers/underflow/provenance.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::replay {

/// Returns the larger of two magnitudes; NaN if one is NaN.
double larger(double a, double b);

/// A value for each role of gradients that policies look at.
template <class T>
struct OfGradients {
  T weights{}, activations{};

  T& of(log::Role role) { return role == log::Role::weight_grad ? weights : activations; }
  T of(log::Role role) const { return role == log::Role::weight_grad ? weights : activations; }
};

struct SeriesAttempt;
struct SeriesStep;

/// The gradients that a log records at any step, on any rank. A step without them has unknown
/// gradients.
struct Recorded {
  OfGradients<bool> max_abs, microbatches;  ///< by scalars
  OfGradients<unsigned> tables;             ///< number of tensors that have histograms
  OfGradients<unsigned> ranks = {1, 1};     ///< number of ranks that must have recorded

  /// Returns true if the log records weight gradients separately at some step.
  bool has_weights() const { return max_abs.weights || tables.weights != 0; }
  /// Returns true if all gradients of a role are known at a step: from the scalars of every rank,
  /// or from histograms of all tensors. With several ranks the histograms cover only rank 0.
  bool knows(const SeriesStep& step, log::Role role) const;
  /// Returns true if some gradient of a step, or of an attempt, is unknown.
  bool partial(const SeriesStep& step) const;
  bool partial(const SeriesAttempt& attempt) const;
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

/// One attempt of a step, over all ranks.
struct SeriesAttempt {
  LargestMagnitudes largest;
  std::optional<double> loss_scale;  ///< from the first rank that recorded it
  OfGradients<unsigned> told{};      ///< number of ranks that recorded magnitudes

  /// Adds the largest magnitude of a role that one rank recorded.
  void see(log::Role role, double magnitude, Recorded& recorded);
};

/// One step: its last attempt, and everything that is not recorded for each attempt.
struct SeriesStep : SeriesAttempt {
  LargestMagnitudes wide;             ///< finite gradients computed in binary32; not in `largest`
  std::optional<double> table_scale;  ///< loss scale that the values of histograms carry
  /// Infinite gradients were recorded as unscaled, with values that binary16 holds unchanged.
  bool infinite_unscaled = false;
  /// Smallest and largest loss scale over the ranks that recorded it.
  double least_scale = std::numeric_limits<double>::infinity(), most_scale = 0;
  std::optional<bool> found_inf;  ///< true if any rank found infinities; empty if none says
  unsigned told_found_inf = 0;    ///< number of ranks that recorded found_inf
  /// Largest magnitude of microbatches whose loss scale is unknown; still scaled.
  std::optional<double> scaled_microbatches;
  OfGradients<unsigned> tables;        ///< tensors that have histograms
  OfGradients<unsigned> microbatches;  ///< ranks that recorded microbatches
  /// All attempts, by number from 0, if there were several; some may be missing.
  std::map<unsigned, SeriesAttempt> attempts;

  /// Must be called before the step is evaluated. in_fp32: FP32 sums the weight gradients of
  /// microbatches; then only the microbatches count, if all `ranks` recorded them.
  void take_sums(bool in_fp32, unsigned ranks);
  /// Adds `wide` to `largest`. Gradients that a 16-bit run computes in binary32, as for batch
  /// normalization, do not overflow with the others; if any_narrow, they count only without the
  /// others.
  void take_wide(bool any_narrow);
  /// Adds the scalars of one rank. microbatch_scale: its microbatches' loss scale; empty: unknown.
  void add(const log::StepScalars& scalars, std::optional<double> microbatch_scale,
           Recorded& recorded);
  /// Adds microbatches whose scale was unknown before; ignores an empty or unusable `scale`.
  void unscale_microbatches(std::optional<double> scale);
  /// Returns true if microbatches that other steps have were not recorded on all ranks. On one
  /// rank, a step with weight gradients and no microbatches had only one. The largest activation
  /// gradient of a step covers all its microbatches.
  bool lacks_microbatches(const Recorded& recorded) const;

 private:
  void add_microbatches(const log::StepScalars& scalars, std::optional<double> scale);
  void add_attempts(const log::StepScalars& scalars, Recorded& recorded);
};

/// Returns the number of ranks that must have recorded each role. Summed weight gradients are equal
/// on all ranks, unless the manifest says that each rank has a part; activation gradients never
/// are.
OfGradients<unsigned> ranks_wanted(unsigned folders, const std::optional<log::Manifest>& manifest);

/// Returns the largest scale at which the run may have applied infinities; above it, steps that
/// were not skipped had finite weight gradients. -1: at every scale. Empty: the run is not known to
/// test.
std::optional<double> untested_to(const std::optional<log::Manifest>& manifest,
                                  const std::map<std::int64_t, SeriesStep>& steps);

/// Sums histograms step by step; consecutive ones of a step are added before they are classified.
class FlushedSum {
 public:
  explicit FlushedSum(const underflow::Target& target) : target_(target) {}

  void add(const frames::Frame& frame);
  /// Adds zeros that may be flushed values, as they were computed in binary16, to upper bounds.
  void add_perhaps(std::int64_t step, std::uint64_t zeros);
  std::vector<FlushedProfile> finish();

 private:
  void close();

  underflow::Target target_;
  bool open_ = false;
  std::int64_t step_ = 0;  ///< step of `tables_`
  std::vector<underflow::ScaledTable> tables_;
  std::map<std::int64_t, FlushedProfile> steps_;
};

/// Infinities that an explicit cast to FP16 may have made in a run that computed in wide formats:
/// (index of the step, its scale), ascending.
using MaybeCast = std::vector<std::pair<std::size_t, double>>;

/// Attributes an infinity to FP16 if finite gradients of nearby steps come close to FP16's limit at
/// that scale: a wide format has no reason to overflow just there.
void find_casts(StepSeries& series, const MaybeCast& maybe);

/// Marks infinities as independent of the scale if lowering it by far did not help, although
/// gradients of nearby steps are far below overflow: overflow.hpp.
void find_no_cure(StepSeries& series);

/// Collects the series of one log while it is read.
struct SeriesBuilder {
  struct Tensor {
    TensorSeries series;
    bool loss_scaled = false;
    underflow::Provenance provenance;
    std::vector<std::pair<std::int64_t, std::uint64_t>> zeros;
  };

  /// recorded_scale: --recorded-scale, the loss scale of values that were recorded scaled.
  SeriesBuilder(std::string of, const underflow::Target& to, std::optional<double> scale)
      : log(std::move(of)), target(to), flushed(to), recorded_scale(scale) {}

  std::string log;
  underflow::Target target;
  FlushedSum flushed;
  std::optional<double> recorded_scale;
  std::optional<log::Manifest> manifest;
  std::map<std::int64_t, SeriesStep> steps;
  /// Steps whose weights, activations or loss hold infinity or NaN; some are not in `steps`.
  std::set<std::int64_t> broken_forward;
  std::map<std::int64_t, double> losses;  ///< finite losses scaled in FP16, by step
  std::map<std::string, std::size_t> index;
  std::deque<Tensor> tensors;
  bool any_scalars = false, any_bounds = false;
  bool of_other_tool = false, any_magnitude = false;
  unsigned ranks = 1;
  Recorded recorded;
  underflow::Bfloat16Run bfloat16;
  underflow::ComputedFormats formats;  ///< set from the tensors after all are read
  frames::SumFormat sums;
  std::optional<double> untested;  ///< untested_to()

  void add(const frames::Frame& frame);
  void add(const log::StepScalars& scalars);
  /// From any rank: a step overflows if it overflows on one of them.
  void add(const frames::StepPeak& peak);
  /// Adds a rank after the first. A step's gradients are known if all ranks recorded them.
  void add_rank(const std::vector<log::StepScalars>& scalars);
  /// Returns the series; empty if the log has no every-step scalars, or is another tool's and has
  /// neither tensors nor peaks: scale_series() uses its scalars. Throws log::BadInput if a step has
  /// no magnitude of gradients.
  std::optional<StepSeries> finish();

  Tensor& tensor_of(const frames::Frame& frame);
  void add_gradient(const frames::Frame& frame, double max_abs);
  void add_loss(std::int64_t step, double magnitude);
  void tell_formats();
  bool scalars_alone() const { return of_other_tool && !any_magnitude; }
  bool carries_scale() const { return manifest && manifest->gradients == log::ScaleState::scaled; }
  std::optional<double> scale_of(const SeriesStep& step) const;
  bool tested(const SeriesStep& step, std::optional<double> scale) const;
  AttemptMagnitudes rounded(std::int64_t number, double max_abs, std::optional<double> scale) const;
  AttemptMagnitudes seen(std::int64_t number, const LargestMagnitudes& largest,
                         std::optional<double> scale) const;
  void add_step(StepSeries& series, std::int64_t number, SeriesStep& step) const;
  void add_attempts(StepSeries& series, std::int64_t number, const SeriesStep& step) const;
  void add_tensors(StepSeries& series);
};

}  // namespace halfscope::analyzers::replay
