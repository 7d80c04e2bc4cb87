// SPDX-License-Identifier: Apache-2.0
// The replay loop, compiled for each policy type: virtual calls at each step would halve its speed.
#include "analyzers/replay/replay_loop.hpp"

#include "halfscope/policy/variant.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// Replays one step. If the outcome of an attempt is unknown, the policy is not called and the step
/// ends: a guess would affect every later step. `follows`: the policy follows magnitudes.
template <class P>
Stepped step_once(P& policy, bool follows, const AttemptMagnitudes& first,
                  const std::vector<AttemptMagnitudes>* attempts) {
  Stepped step;
  step.scale = step.last_scale = policy.scale();
  do {
    const AttemptMagnitudes& seen =
        attempts == nullptr || attempts->empty()
            ? first
            : (*attempts)[std::min<std::size_t>(step.attempts, attempts->size() - 1)];
    if (step.attempts > 0) step.last_scale = policy.scale();
    OverflowVerdict verdict = judge(seen, step.last_scale);
    const std::optional<double> magnitude = followed(seen, step.last_scale);
    if (verdict == OverflowVerdict::clean && !magnitude && follows) {
      verdict = OverflowVerdict::unknown;
    }
    step.overflow = step.overflow || verdict == OverflowVerdict::overflow;
    step.unknown = verdict == OverflowVerdict::unknown;
    step.nonfinite = verdict == OverflowVerdict::overflow;
    step.model_nan = in_model(seen);
    step.all_flushed = verdict == OverflowVerdict::clean && all_vanish(seen, step.last_scale);
    ++step.attempts;
    step.decision = {};
    if (step.unknown) break;
    step.decision =
        policy.advance({.nonfinite = step.nonfinite, .max_abs = magnitude.value_or(seen.max_abs)});
  } while (step.decision.action == policy::Action::retry && step.decision.error.empty());
  return step;
}

template <class P>
void step_through_as(P& policy, bool follows, const StepSeries& series, const SeeStep& see) {
  auto retried = series.retried.begin();
  for (std::size_t i = 0; i < series.seen.size(); ++i) {
    const bool has_attempts = retried != series.retried.end() && retried->first == i;
    const Stepped step =
        step_once(policy, follows, series.seen[i], has_attempts ? &retried->second : nullptr);
    if (has_attempts) ++retried;
    if (!see(i, step) || !step.decision.error.empty()) return;
  }
}

}  // namespace

void step_through(policy::Policy& policy, const StepSeries& series, const SeeStep& see) {
  const bool follows = policy::needs_of(policy) == policy::Needs::magnitude;
  std::visit([&](auto& own) { step_through_as(own, follows, series, see); }, policy.variant());
}

}  // namespace halfscope::analyzers::replay
