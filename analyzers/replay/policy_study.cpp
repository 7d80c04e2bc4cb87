// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/policy_study.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/underflow/step_facts.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// Compares the run with its replayed policy. Empty if the series does not begin at the run's first
/// step, because the policy's state is then unknown.
std::optional<RunCheck> check_run(const StepSeries& series) {
  const auto own = recorded_policy(series.manifest);
  if (!own || series.steps.empty() || series.steps.front() != 0) return std::nullopt;
  const auto [difference, steps] = compare_with_run(replay(*own, series), series);
  if (steps == 0) return std::nullopt;
  return RunCheck{policy::text_of(*own), difference, steps};
}

/// Returns the policy to tune, with the settings that stay as they are.
policy::Policy to_tune(const PolicyOptions& options, const StepSeries& series) {
  std::vector<policy::Policy> candidates = options.policies;
  if (const auto own = recorded_policy(series.manifest)) {
    candidates.insert(options.tuned ? candidates.end() : candidates.begin(), *own);
  }
  const auto name_of = [](const policy::Policy& policy) { return policy::info_of(policy).name; };
  if (options.tuned) {
    const bool bare = policy::short_text_of(*options.tuned) == name_of(*options.tuned);
    const auto of_name =
        std::find_if(candidates.begin(), candidates.end(), [&](const policy::Policy& candidate) {
          return tunable(candidate) && name_of(candidate) == name_of(*options.tuned);
        });
    return bare && of_name != candidates.end() ? *of_name : *options.tuned;
  }
  const auto first = std::find_if(candidates.begin(), candidates.end(), tunable);
  return first != candidates.end() ? *first : policy::make("torch");
}

bool same(const Trace& a, const Trace& b) {
  if (!a.unavailable.empty() || !b.unavailable.empty()) return a.unavailable == b.unavailable;
  const bool ends = a.error.has_value() == b.error.has_value() && a.length == b.length;
  return ends && a.scale == b.scale && a.skipped == b.skipped && a.unknown == b.unknown &&
         a.applied_nonfinite == b.applied_nonfinite && a.attempts == b.attempts &&
         a.parts == b.parts;
}

/// Groups traces that did the same at every step, best first; in a group, in the requested order.
std::vector<std::vector<std::size_t>> alike(const std::vector<Trace>& traces) {
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t i : ranked(traces)) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return same(traces[g.front()], traces[i]);
    });
    if (group == groups.end()) {
      groups.push_back({i});
    } else {
      group->push_back(i);
    }
  }
  return groups;
}

/// Returns the static scale of a series, by the rules of recommend.cpp.
StaticAdvice static_advice(const StepSeries& series, int headroom_bits) {
  double largest = 0;
  for (const AttemptMagnitudes& seen : series.seen) largest = std::max(largest, at_least(seen));
  if (largest == 0) return {{}, NoStatic::unknown, false};
  const int highest = underflow::StepMagnitude{magnitude_of(largest)}.highest_safe_log2(kBinary16);
  const bool hides = std::ranges::any_of(series.seen, [](const AttemptMagnitudes& seen) {
    return seen.partial || (!std::isfinite(seen.max_abs) && !in_model(seen));
  });
  StaticAdvice advice{std::min(underflow::kLastLog2Scale, highest - headroom_bits), {}, hides};
  if (underflow::diverges(highest, in_model(series.seen.back()))) {
    advice.refused = NoStatic::diverges;
  }
  return advice;
}

}  // namespace

policy::Policy own_or_torch(const StepSeries& series) {
  const auto own = recorded_policy(series.manifest);
  return own && tunable(*own) ? *own : policy::make("torch");
}

PolicyStudy study_policies(StepSeries&& series, const PolicyOptions& options,
                           const StaticAdvice& advised) {
  PolicyStudy study;
  study.series = std::move(series);
  study.traces = replay(options.policies.empty() ? policy::all() : options.policies, study.series);
  study.groups = alike(study.traces);
  study.recorded = recorded_trace(study.series);
  study.check = check_run(study.series);
  study.advised = advised;
  if (advised.log2 && !advised.refused) {
    const std::string fixed = "static,scale=2^" + std::to_string(*advised.log2);
    study.fixed = replay(policy::make(fixed), study.series);
  }
  if (!study.series.from_scale) {  // unknown gradients would decide
    study.tuned =
        tune(to_tune(options, study.series), study.series, options.targets, options.harmless);
  }
  study.target_underflow = options.targets.target_underflow;
  study.pitfalls = pitfalls(study.series, study.traces);
  if (study.check && !study.check->first_difference) {  // the policy explains every jump
    std::erase_if(study.pitfalls, [](const Pitfall& pitfall) {
      return pitfall.kind == PitfallKind::not_in_checkpoint;
    });
  }
  return study;
}

PolicyStudy study_magnitudes(StepSeries&& series, const PolicyOptions& options) {
  const StaticAdvice advised = static_advice(series, options.targets.headroom_bits);
  return study_policies(std::move(series), options, advised);
}

}  // namespace halfscope::analyzers::replay
