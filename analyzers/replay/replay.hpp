// SPDX-License-Identifier: Apache-2.0
// Loss-scaling policies replayed over a recorded run: `halfscope policies`. Open loop: gradients
// are taken as recorded, whatever the policy would have made of the weights.
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

/// Why a trace ended, or where its scale ran to.
enum class TraceOutcome : std::uint8_t {
  ran,       ///< neither of the below
  error,     ///< the framework ends training
  floor,     ///< at its least setting at the end, and steps still overflow there
  zero,      ///< the scale became 0
  infinity,  ///< the scale became infinite
};
std::string_view name_of(TraceOutcome outcome);

struct TraceError {
  std::string message;  ///< the framework's
  std::int64_t step = 0;
};

/// A scale that changes rarely: (index of the step it holds from, scale), ascending.
using ScaleRuns = std::vector<std::pair<std::size_t, double>>;

/// What one policy would have done.
struct Trace {
  std::string name;  ///< "torch"
  policy::Policy policy;
  std::string unavailable;  ///< "needs X": then nothing below is known

  std::size_t length = 0;   ///< steps replayed: fewer than the series has where an error ended it
  std::size_t untaken = 0;  ///< steps after that
  std::int64_t first_step = 0;
  ScaleRuns scale;                     ///< used at the first attempt
  double final_scale = 0;              ///< that the next step would use
  std::vector<std::int64_t> skipped;   ///< steps, surely; at most these and the unknown ones are
  std::vector<std::int64_t> overflow;  ///< some attempt surely overflowed
  /// Steps at which it is unknown whether the last attempt overflowed: the run did, at a larger
  /// scale. The policy's state is left as it is there, and none is in `skipped`, nor in
  /// `applied_nonfinite`. Scales after such a step are those of a policy that did not see it.
  std::vector<std::int64_t> unknown;
  std::vector<std::int64_t> applied_nonfinite;  ///< infinity or NaN went into the weights, surely
  /// Applied at a scale at which even the largest gradient is rounded to zero: nothing is learnt.
  std::vector<std::int64_t> all_flushed;
  std::map<std::size_t, std::uint32_t> attempts;  ///< by index; of all others 1
  std::map<std::size_t, double> last_scale;       ///< by index: the last attempt's, where several
  std::uint64_t model_nan_skips = 0;              ///< skipped where no scale would have helped
  std::uint64_t model_nan_applied = 0;            ///< applied where no scale would have helped
  std::optional<TraceError> error;
  TraceOutcome outcome = TraceOutcome::ran;

  /// Share flushed at the steps that have tables: [low, high]; empty where there are none.
  std::optional<std::pair<double, double>> mean_flushed, worst_flushed;
  std::int64_t worst_step = 0;

  /// Of policies that keep a scale for every tensor or layer: theirs, by name. `scale` is then the
  /// smallest of FP8 delayed scaling's, the last layer's (the accumulated one) of ALS.
  std::vector<std::pair<std::string, ScaleRuns>> parts;

  double scale_at(std::size_t index) const;
  /// Share of all gradient values that the weights never see, [low, high]: all of a step that is
  /// skipped, and perhaps of one that is unknown; all from the step on at which an error ends
  /// training, or an infinity goes into the weights; of the others what is flushed: the mean of the
  /// steps that have tables, but no less than what `all_flushed` shows.
  std::pair<double, double> lost() const;
  double lost_share() const { return lost().second; }
};

/// Replays one policy. The series has no gaps.
Trace replay(const policy::Policy& policy, const StepSeries& series);

/// Many, on all cores, in the given order.
std::vector<Trace> replay(const std::vector<policy::Policy>& policies, const StepSeries& series);

/// The order of a ranked table: indices, best first. The smallest lost_share() to three digits, as
/// it is shown; then the smallest that is surely lost, the larger final scale, the order given.
/// Where some traces know what is flushed, those that do not
/// come after them; traces that ended in an error after those, unavailable ones last.
std::vector<std::size_t> ranked(const std::vector<Trace>& traces);

/// The policy the run says it had, with its settings; empty where it does not say, or had none.
std::optional<policy::Policy> recorded_policy(const StepSeries& series);

/// What the run itself did, as a trace named "recorded"; empty where its scales are not known.
std::optional<Trace> recorded_trace(const StepSeries& series);

/// The first step at which a replay differs from what the run did: scale or skip.
struct Difference {
  std::int64_t step = 0;
  double replayed_scale = 0, recorded_scale = 0;
  bool replayed_skip = false, recorded_skip = false;
};
/// Over steps the run says something of; second: how many those are.
std::pair<std::optional<Difference>, std::uint64_t> compare_with_run(const Trace& trace,
                                                                     const StepSeries& series);

}  // namespace halfscope::analyzers::replay
