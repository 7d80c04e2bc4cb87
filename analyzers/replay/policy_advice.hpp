// SPDX-License-Identifier: Apache-2.0
// Advice from replays: settings that would have skipped the fewest steps, and pitfalls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/replay/replay.hpp"
#include "analyzers/underflow/recommend_options.hpp"

namespace halfscope::analyzers::replay {

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

}  // namespace halfscope::analyzers::replay
