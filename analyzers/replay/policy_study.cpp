// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/policy_study.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/underflow/step_facts.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// The largest power of two at which nothing recorded overflows, less the headroom; as
/// Recommendation::static_log2, from what the policies see. Steps that no scale helps are left out.
std::optional<int> static_log2(const StepSeries& series, int headroom_bits) {
  double largest = 0;
  for (const Seen& seen : series.seen) largest = std::max(largest, at_least(seen));
  if (largest == 0) return std::nullopt;
  const int safe = underflow::StepMagnitude{magnitude_of(largest)}.highest_safe_log2(kBinary16);
  return std::min(underflow::kLastLog2Scale, safe - headroom_bits);
}

/// The recommended static scale, or why there is none.
void add_fixed(PolicyStudy& study, int headroom_bits, const std::optional<Advised>& advised) {
  const auto own = static_log2(study.series, headroom_bits);
  if (own && underflow::too_small(*own, in_model(study.series.seen.back()))) {
    study.refused_log2 = own;
  } else if (const auto log2 = advised ? advised->static_log2 : own) {
    study.fixed = replay(policy::make("static,scale=2^" + std::to_string(*log2)), study.series);
  }
}

/// Of a run seen from its first step: inside it the policy's state is not known.
std::optional<RunCheck> check_run(const StepSeries& series) {
  const auto own = recorded_policy(series);
  if (!own || series.steps.empty() || series.steps.front() != 0) return std::nullopt;
  const auto [difference, steps] = compare_with_run(replay(*own, series), series);
  if (steps == 0) return std::nullopt;
  return RunCheck{policy::text_of(*own), difference, steps};
}

/// The policy whose settings are searched, with those settings that stay as they are.
policy::Policy to_tune(const PolicyOptions& options, const StepSeries& series) {
  std::vector<policy::Policy> candidates = options.policies;
  if (const auto own = recorded_policy(series)) {
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

/// Traces that did the same at every step, best first; within a group in the order asked for.
std::vector<std::vector<std::size_t>> alike(const PolicyStudy& study) {
  std::vector<std::vector<std::size_t>> groups;
  for (const std::size_t i : study.order) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return same(study.traces[g.front()], study.traces[i]);
    });
    if (group == groups.end()) {
      groups.push_back({i});
    } else {
      group->push_back(i);
    }
  }
  return groups;
}

}  // namespace

std::optional<TunedPolicy> tune(const StepSeries& series, const PolicyOptions& options) {
  return tune(to_tune(options, series), series, options.targets.target_underflow);
}

PolicyStudy study_policies(StepSeries&& series, const PolicyOptions& options,
                           std::optional<Advised> advised) {
  close_gaps(series, options.assume_constant);
  PolicyStudy study;
  study.series = std::move(series);
  study.traces = replay(options.policies.empty() ? policy::all() : options.policies, study.series);
  study.order = ranked(study.traces);
  study.groups = alike(study);
  study.recorded = recorded_trace(study.series);
  study.check = check_run(study.series);
  add_fixed(study, options.targets.headroom_bits, advised);
  study.tuned = advised && advised->tuned ? std::move(advised->tuned) : tune(study.series, options);
  study.target_underflow = options.targets.target_underflow;
  study.traps = traps(study.series, study.traces);
  if (study.check && !study.check->first_difference) {  // the policy explains every jump
    std::erase_if(study.traps,
                  [](const Trap& trap) { return trap.kind == TrapKind::not_in_checkpoint; });
  }
  return study;
}

}  // namespace halfscope::analyzers::replay
