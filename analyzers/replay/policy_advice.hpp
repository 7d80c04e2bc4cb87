// SPDX-License-Identifier: Apache-2.0
// What a replay teaches: settings that would have skipped least, and pitfalls that were stepped in.
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

/// Whether what becomes zero at a loss scale of 2^k surely does no harm.
using Harmless = std::function<bool(int log2)>;

/// Dynamic settings found by replaying a grid of them over the recorded run.
struct TunedPolicy {
  std::string name;  ///< policy
  std::string text;  ///< with the settings that differ from the defaults, as --policy takes them
  Trace trace;
  double initial = 1;          ///< scale
  std::uint64_t interval = 0;  ///< clean steps before it grows
  bool kept = false;  ///< those it had: none that was tried does better, or they do no harm
  bool within_target = false;  ///< mean flushed share at most the target
  /// What the settings it had do, where they keep the target and these do not: they lose more, or
  /// start at a scale that leaves too little room.
  std::optional<Trace> own_within_target;
  std::uint64_t tried = 0;  ///< combinations
  std::string stopped_by;   ///< what_stops()
};

/// Whether a policy has an initial scale and a growth interval to tune, and is not set to be
/// static.
bool tunable(const policy::Policy& policy);

/// Of one policy, with all other settings as it has them: initial scale, growth interval and, where
/// it has one, floor, within what its framework takes (policy::limits_of). Settings with which
/// training goes on are better than those with which it ends. Of these: fewest lost steps (skipped,
/// unknown; further attempts of a step count too) among those whose mean flushed share is surely
/// within the target; where none is known to be, the smallest share of all gradient values lost, to
/// skipped steps or flushed, at most; among those that differ by less than 1 % in that, the
/// smallest that is surely lost. Without tables a step at which even the largest gradient is
/// flushed is lost, and others count by how near they are to it. The settings it has are kept where
/// none does better, or where they do no harm: they skip a step in a hundred at most, or
/// three and no serious share of them, and what they flush is negligible. Else the smallest flushed
/// share, the growth interval nearest to its own, the smallest initial scale, or where what is
/// flushed is not known, the largest. For long series the grid is thinned, so that it takes no more
/// than 2e8 steps. Empty where nothing can be tuned, or no step tells a scale.
std::optional<TunedPolicy> tune(const policy::Policy& policy, const StepSeries& series,
                                const underflow::RecommendOptions& targets,
                                const Harmless& harmless = {});

/// Why the best settings still skip steps or flush more than the target: the limits that no
/// setting gets around, in whole sentences. Empty where they do neither.
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
std::string_view name_of(PitfallKind kind);  ///< as JSON has it

/// A known pitfall that applies to this run.
struct Pitfall {
  PitfallKind kind = PitfallKind::floor;
  std::string policy;  ///< whose; "recorded" of the run itself
  std::optional<std::int64_t> step;
  std::string what;  ///< happens: a sentence
  std::string rest;  ///< why, and the way out: whole sentences
  std::string text() const { return what + " " + rest; }
};

std::vector<Pitfall> pitfalls(const StepSeries& series, const std::vector<Trace>& traces);

}  // namespace halfscope::analyzers::replay
