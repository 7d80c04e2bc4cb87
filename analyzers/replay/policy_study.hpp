// SPDX-License-Identifier: Apache-2.0
// All results of replays over one log, for `halfscope policies` and the report: the traces,
// settings that would have skipped the fewest steps, and pitfalls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/replay/replay.hpp"
#include "analyzers/underflow/recommend_options.hpp"

namespace halfscope::analyzers::replay {

/// Why a static scale that holds all recorded gradients is not recommended.
enum class NoStatic : std::uint8_t {
  unknown,      ///< the size of gradients is unknown; there is no such scale
  diverges,     ///< underflow::diverges()
  upper_bound,  ///< infinities hide the largest gradients of every recorded step
  beyond        ///< the run ends in a failure that neither static nor dynamic scales prevent
};

/// A static scale, with the reason if it is not recommended.
struct StaticAdvice {
  std::optional<int> log2;
  std::optional<NoStatic> refused;
  bool at_most = false;  ///< some gradients may have been larger than recorded
};

/// Returns true if the values that become zero at loss scale 2^k surely do no harm.
using Harmless = std::function<bool(int log2)>;

/// Dynamic settings, found by replaying a grid of settings over the recorded run.
struct TunedPolicy {
  std::string name;  ///< name of the policy
  std::string text;  ///< name and settings that differ from the defaults, as --policy accepts them
  Trace trace;
  double initial = 1;          ///< initial scale
  std::uint64_t interval = 0;  ///< clean steps before the scale grows
  bool kept = false;  ///< the policy keeps its settings: none tried is better, or they do no harm
  bool within_target = false;  ///< mean flushed share at most the target
  /// Trace of the policy's own settings if they keep the target and these do not. They were not
  /// chosen: they lose more steps, or start at a scale with too little headroom.
  std::optional<Trace> own_within_target;
  std::uint64_t tried = 0;  ///< number of combinations tried
  std::string stopped_by;   ///< result of what_stops()
};

/// Returns true if a policy has an initial scale and a growth interval, and is not static.
bool tunable(const policy::Policy& policy);

/// Tunes the initial scale, the growth interval and, if the policy has one, the floor, within the
/// framework's limits (policy::limits_of); other settings stay. Empty if nothing can be tuned, or
/// if no step shows a scale. For long series the grid is thinned to at most 2e8 replayed steps.
/// Order of preference:
/// 1. training does not end early;
/// 2. the mean flushed share is surely within the target, and the fewest steps are lost (skipped,
///   unknown, and extra attempts). If no setting keeps the target: the smallest upper bound of the
///   share of gradient values that are skipped or flushed. Without histograms, steps that flush
///   even the largest gradient are lost, and others count by how near they are to that;
/// 3. among settings within 1 % of the best: the smallest sure loss, the smallest flushed share,
///   the growth interval nearest to the policy's own, the smallest initial scale (the largest if
///   flushing is unknown).
/// The policy's own settings are kept if none is better, or if they do no harm: they skip at most
/// one step in a hundred, or at most three that are no serious share, and flush a negligible share.
std::optional<TunedPolicy> tune(const policy::Policy& policy, const StepSeries& series,
                                const underflow::RecommendOptions& targets,
                                const Harmless& harmless = {});

/// Returns sentences on the limits that no setting avoids, if the best settings still skip steps or
/// flush more than the target. Empty if they do neither.
std::string what_stops(const TunedPolicy& tuned, const StepSeries& series, double target_underflow);

enum class PitfallKind : std::uint8_t {
  nan_in_model,
  norm_overflow,
  not_in_checkpoint,
  floor,
  exception,
  hysteresis,
  dragged,
  zero,
  infinity,
  applied,
  retries
};
std::string_view name_of(PitfallKind kind);  ///< the name in JSON

/// A known pitfall of loss scaling that affects this run.
struct Pitfall {
  PitfallKind kind = PitfallKind::floor;
  std::string policy;  ///< name of the policy; "recorded" for the run itself
  std::optional<std::int64_t> step;
  std::string what;  ///< the event: one sentence
  std::string rest;  ///< the cause and the way out: whole sentences
  std::string text() const { return what + " " + rest; }
};

std::vector<Pitfall> pitfalls(const StepSeries& series, const std::vector<Trace>& traces);

struct PolicyOptions {
  std::vector<policy::Policy> policies;  ///< empty: every policy at its framework's defaults
  bool assume_constant = false;          ///< --assume-constant-between: study() fills gaps
  underflow::RecommendOptions targets;
  Harmless harmless;  ///< set by study()
  /// The policy whose settings are tuned. If it has default settings, a requested policy of its
  /// name, or the run's own, is tuned instead. Empty: the run's own policy, else the first
  /// requested one that can be tuned, else torch.
  std::optional<policy::Policy> tuned;
};

/// The run's own policy, replayed with its settings and compared with the run.
struct RunCheck {
  std::string text;  ///< name and settings of the policy
  std::optional<Difference> first_difference;
  std::uint64_t steps = 0;  ///< number of steps compared
};

struct PolicyStudy {
  StepSeries series;
  std::vector<Trace> traces;  ///< in the requested order
  /// Indices into `traces`, best first; traces that did the same at every step share a group.
  std::vector<std::vector<std::size_t>> groups;
  std::optional<Trace> recorded;  ///< the run itself
  std::optional<RunCheck> check;
  StaticAdvice advised;
  std::optional<Trace> fixed;  ///< replay of the recommended static scale; empty if there is none
  std::optional<TunedPolicy> tuned;
  double target_underflow = 0;  ///< the target of `tuned`
  std::vector<Pitfall> pitfalls;
};

/// Returns the run's own policy with its settings, if it can be tuned; else PyTorch's.
policy::Policy own_or_torch(const StepSeries& series);

/// Replays the policies over a series without gaps.
PolicyStudy study_policies(StepSeries&& series, const PolicyOptions& options,
                           const StaticAdvice& advised);

/// As study_policies(), for a run with magnitudes only: computes the static scale itself.
PolicyStudy study_magnitudes(StepSeries&& series, const PolicyOptions& options);

}  // namespace halfscope::analyzers::replay
