// SPDX-License-Identifier: Apache-2.0
// Replays loss-scaling policies over a recorded run: `halfscope policies`. Open loop: gradients are
// used as recorded, although a policy would have changed the weights.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/replay/step_series.hpp"
#include "halfscope/policy/policy.hpp"

namespace halfscope::analyzers::replay {

/// How a trace ended.
enum class TraceOutcome : std::uint8_t {
  ran,       ///< none of the outcomes below
  error,     ///< the framework ended training
  floor,     ///< the scale ended at its floor, and steps still overflow there
  zero,      ///< the scale became 0
  infinity,  ///< the scale became infinite
};
std::string_view name_of(TraceOutcome outcome);

struct TraceError {
  std::string message;  ///< the framework's error message
  std::int64_t step = 0;
};

/// A scale that rarely changes: (index of the first step with this scale, scale), ascending.
using ScaleRuns = std::vector<std::pair<std::size_t, double>>;

/// The result of replaying one policy.
struct Trace {
  std::string name;  ///< for example "torch"
  policy::Policy policy;
  std::string unavailable;  ///< reason why the policy cannot be replayed: "needs X"

  std::size_t length = 0;   ///< steps replayed, fewer than the series has after an error
  std::size_t untaken = 0;  ///< number of steps after these
  std::int64_t first_step = 0;
  ScaleRuns scale;                     ///< at the first attempt of each step
  double final_scale = 0;              ///< the scale of the next step
  std::vector<std::int64_t> skipped;   ///< surely skipped steps; `unknown` ones may be too
  std::vector<std::int64_t> overflow;  ///< steps with an attempt that surely overflowed
  /// Steps whose last attempt may or may not have overflowed: the run overflowed there at a larger
  /// scale. The policy's state does not change at such a step, which is neither in `skipped` nor in
  /// `applied_nonfinite`. Later scales are those of a policy that did not see the step.
  std::vector<std::int64_t> unknown;
  std::vector<std::int64_t> applied_nonfinite;  ///< steps at which infinity or NaN surely went into
                                                ///< the weights
  /// Steps applied at a scale that rounds even the largest gradient to zero: nothing is learnt.
  std::vector<std::int64_t> all_flushed;
  std::map<std::size_t, std::uint32_t> attempts;  ///< by index; 1 for all other steps
  std::map<std::size_t, double> last_scale;       ///< by index: the last of several attempts'
  std::uint64_t model_nan_skips = 0;              ///< skipped steps that no scale would have helped
  std::uint64_t model_nan_applied = 0;            ///< applied steps that no scale would have helped
  std::optional<TraceError> error;
  TraceOutcome outcome = TraceOutcome::ran;

  /// Share flushed at the steps that have histograms, as [low, high]; empty if there are none.
  std::optional<std::pair<double, double>> mean_flushed, worst_flushed;
  std::int64_t worst_step = 0;

  /// For policies with one scale per tensor or layer: these scales, by name. `scale` is then the
  /// smallest one for FP8 delayed scaling, and the accumulated one of the last layer for ALS.
  std::vector<std::pair<std::string, ScaleRuns>> parts;

  double scale_at(std::size_t index) const;
  /// Returns the share of all gradient values that do not reach the weights, as [low, high]. All
  /// values are lost in skipped steps (for `high` also in unknown ones), and in every step from an
  /// error, or from an infinity in the weights, on. In other steps flushed values are lost: the
  /// mean share of the steps with histograms, but at least the share of `all_flushed`.
  std::pair<double, double> lost() const;
  double lost_share() const { return lost().second; }
};

/// Replays one policy over a series without gaps.
Trace replay(const policy::Policy& policy, const StepSeries& series);

/// Replays several policies in parallel; returns the traces in the given order.
std::vector<Trace> replay(const std::vector<policy::Policy>& policies, const StepSeries& series);

/// Returns the indices of the traces, best first: smallest lost_share(), rounded to the three
/// digits that are shown; then smallest lower bound of lost(), largest final scale, given order. If
/// some traces have flushed shares, traces without them come later; then traces that ended in an
/// error, then unavailable ones.
std::vector<std::size_t> ranked(const std::vector<Trace>& traces);

/// Returns the policy that a manifest names, with its settings; empty if it names none.
std::optional<policy::Policy> recorded_policy(const std::optional<log::Manifest>& manifest);

/// Returns the run's own steps as a trace named "recorded"; empty if the scales are unknown.
std::optional<Trace> recorded_trace(const StepSeries& series);

/// The first step at which a replay differs from the run, in its scale or in a skip.
struct Difference {
  std::int64_t step = 0;
  double replayed_scale = 0, recorded_scale = 0;
  bool replayed_skip = false, recorded_skip = false;
};
/// Compares a trace with the run over the steps whose scale or skip is recorded. Returns the first
/// difference and the number of compared steps.
std::pair<std::optional<Difference>, std::uint64_t> compare_with_run(const Trace& trace,
                                                                     const StepSeries& series);

}  // namespace halfscope::analyzers::replay
