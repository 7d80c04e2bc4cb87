// SPDX-License-Identifier: Apache-2.0
// Everything a replay tells of one log: what `halfscope policies` and the report show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/replay/policy_advice.hpp"
#include "analyzers/replay/replay.hpp"

namespace halfscope::analyzers::replay {

struct PolicyOptions {
  std::vector<policy::Policy> policies;  ///< empty: every policy at its framework's defaults
  bool assume_constant = false;          ///< --assume-constant-between
  underflow::RecommendOptions targets;
  /// The policy whose settings are tuned. At its defaults it stands for one of its name that was
  /// asked for, else that of the run, with their settings. Empty: that of the run, else the first
  /// asked for that can be tuned, else torch.
  std::optional<policy::Policy> tuned;
};

/// The policy that drove the run, replayed with its settings.
struct RunCheck {
  std::string text;  ///< policy and settings
  std::optional<Difference> first_difference;
  std::uint64_t steps = 0;  ///< compared
};

struct PolicyStudy {
  StepSeries series;
  std::vector<Trace> traces;       ///< in the order asked for
  std::vector<std::size_t> order;  ///< indices into `traces`, best first
  /// The same, those that did the same at every step together.
  std::vector<std::vector<std::size_t>> groups;
  std::optional<Trace> recorded;  ///< what the run did
  std::optional<RunCheck> check;
  std::optional<Trace> fixed;  ///< the recommended static scale, where there is one
  /// log2 of one that is not recommended: too_small(). `fixed` is empty then.
  std::optional<int> refused_log2;
  std::optional<TunedPolicy> tuned;
  double target_underflow = 0;  ///< that `tuned` was to keep
  std::vector<Trap> traps;
};

/// What is recommended anyway; the replay takes it over.
struct Advised {
  std::optional<int> static_log2;
  std::optional<TunedPolicy> tuned;  ///< tune(); empty: found here
};

/// The best dynamic settings of the policy that the options name. Of a series without gaps.
std::optional<TunedPolicy> tune(const StepSeries& series, const PolicyOptions& options);

/// Throws log::BadInput where steps are missing and nothing is to be assumed for them. Without
/// advice the static scale is found from the series.
PolicyStudy study_policies(StepSeries&& series, const PolicyOptions& options,
                           std::optional<Advised> advised = std::nullopt);

}  // namespace halfscope::analyzers::replay
