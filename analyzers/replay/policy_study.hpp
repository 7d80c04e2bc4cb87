// SPDX-License-Identifier: Apache-2.0
// All results of replays over one log, for `halfscope policies` and the report.
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
