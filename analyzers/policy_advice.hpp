// SPDX-License-Identifier: Apache-2.0
// What a replay teaches: settings that would have skipped least, and traps that were stepped in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/recommend.hpp"
#include "analyzers/replay.hpp"

namespace halfscope::analyzers {

/// Dynamic settings found by replaying a grid of them over the recorded run.
struct TunedPolicy {
  std::string name;  ///< policy
  std::string text;  ///< with the settings that differ from the defaults, as --policy takes them
  Trace trace;
  bool within_target = false;  ///< mean flushed share at most the target
  std::uint64_t tried = 0;     ///< combinations
};

/// Of one policy: initial scale, growth interval and, where it has one, floor. Fewest lost steps
/// (skipped, unknown, infinities applied; further attempts of a step count too) among those whose
/// mean flushed share, where the series has tables, is surely within the target, or else the
/// smallest share; then the smallest share, the growth interval nearest to the default, the
/// smallest initial scale (without tables the largest). For long series the grid is thinned, so
/// that it takes no more than 2e8 steps. Empty for policies without these settings and for those
/// that are unavailable.
std::optional<TunedPolicy> tune(const policy::Policy& policy, const StepSeries& series,
                                double target_underflow);

/// A known trap that applies to this run.
struct Trap {
  std::string id;      ///< "floor", "hysteresis", "not_in_checkpoint", "norm_overflow", ...
  std::string policy;  ///< whose; "recorded" of the run itself
  std::optional<std::int64_t> step;
  std::string text;  ///< what happens and the way out; whole sentences
};

std::vector<Trap> traps(const StepSeries& series, const std::vector<Trace>& traces);

}  // namespace halfscope::analyzers
