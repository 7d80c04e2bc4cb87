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
#include "analyzers/replay/static_advice.hpp"

namespace halfscope::analyzers::replay {

struct PolicyOptions {
  std::vector<policy::Policy> policies;  ///< empty: every policy at its framework's defaults
  bool assume_constant = false;          ///< --assume-constant-between; study() closes gaps
  underflow::RecommendOptions targets;
  Harmless harmless;  ///< study() knows it
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
  std::vector<Trace> traces;  ///< in the order asked for
  /// Indices into `traces`, best first, those that did the same at every step together.
  std::vector<std::vector<std::size_t>> groups;
  std::optional<Trace> recorded;  ///< what the run did
  std::optional<RunCheck> check;
  StaticAdvice advised;
  std::optional<Trace> fixed;  ///< the recommended static scale, where there is one
  std::optional<TunedPolicy> tuned;
  double target_underflow = 0;  ///< that `tuned` was to keep
  std::vector<Pitfall> pitfalls;
};

/// The run's own policy, with its settings; else PyTorch's.
policy::Policy own_or_torch(const StepSeries& series);

/// Of a series without gaps.
PolicyStudy study_policies(StepSeries&& series, const PolicyOptions& options,
                           const StaticAdvice& advised);

/// Of a series of magnitudes, which is all that is known of a run: the static scale is found here.
PolicyStudy study_magnitudes(StepSeries&& series, const PolicyOptions& options);

}  // namespace halfscope::analyzers::replay
