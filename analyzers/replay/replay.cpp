// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/replay.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/underflow/share.hpp"
#include "halfscope/policy/variant.hpp"

namespace halfscope::analyzers::replay {

std::string_view name_of(TraceOutcome outcome) {
  constexpr std::string_view kNames[] = {"ran", "error", "floor", "zero", "infinity"};
  return kNames[static_cast<std::size_t>(outcome)];
}

void add_scale(ScaleRuns& runs, std::size_t index, double scale) {
  // Compares bits, so that NaN after NaN is no change.
  if (!runs.empty() &&
      std::bit_cast<std::uint64_t>(runs.back().second) == std::bit_cast<std::uint64_t>(scale)) {
    return;
  }
  runs.emplace_back(index, scale);
}

double Trace::scale_at(std::size_t index) const {
  const auto after =
      std::upper_bound(scale.begin(), scale.end(), index,
                       [](std::size_t at, const auto& run) { return at < run.first; });
  return after == scale.begin() ? NAN : std::prev(after)->second;
}

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

/// Compiled for each policy type: virtual calls at each step would halve its speed.
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

/// Returns true if a policy skips at a scale that no overflow lowers. False for a policy that
/// applies overflows: a static scale does that on purpose.
bool at_floor(policy::Policy policy) {
  constexpr int kEnough = 4096;  // more steps than hysteresis and retries use
  const double scale = policy::scale_of(policy);
  for (int i = 0; i < kEnough; ++i) {
    const policy::Decision decision =
        policy::advance(policy, {.nonfinite = true, .max_abs = INFINITY});
    if (!decision.error.empty()) break;
    if (decision.action == policy::Action::apply) return false;
  }
  return policy::scale_of(policy) == scale;
}

/// Returns true if a step is among the last tenth of the steps, or the last ten.
bool near_end(std::size_t index, std::size_t steps) {
  return index + std::max<std::size_t>(10, steps / 10) >= steps;
}

TraceOutcome outcome_of(const policy::Policy& policy, const Trace& trace, bool overflow_at_end) {
  if (trace.error) return TraceOutcome::error;
  if (trace.final_scale == 0) return TraceOutcome::zero;
  if (std::isinf(trace.final_scale)) return TraceOutcome::infinity;
  const policy::Info& info = policy::info_of(policy);
  const bool moves = !info.interval.empty() || !info.floor.empty();
  return moves && overflow_at_end && at_floor(policy) ? TraceOutcome::floor : TraceOutcome::ran;
}

void replay_one(policy::Policy policy, const StepSeries& series, Trace& trace) {
  bool overflow_at_end = false;  // some step overflows at the final scale
  std::size_t overflowed = 0;    // index of the last such step
  step_through(policy, series, [&](std::size_t i, const Stepped& step) {
    const std::int64_t number = series.steps[i];
    const std::size_t changes = trace.scale.size();
    add_scale(trace.scale, i, step.scale);
    if (trace.scale.size() != changes) overflow_at_end = false;
    trace.length = i + 1;
    if (step.attempts != 1) {
      trace.attempts.emplace_hint(trace.attempts.end(), i, step.attempts);
      trace.last_scale.emplace_hint(trace.last_scale.end(), i, step.last_scale);
    }
    if (step.overflow) trace.overflow.push_back(number);
    if (step.unknown) trace.unknown.push_back(number);
    if (step.applied_nonfinite()) trace.applied_nonfinite.push_back(number);
    if (step.applied_nonfinite() && step.model_nan) ++trace.model_nan_applied;
    if (step.skipped()) trace.skipped.push_back(number);
    if (step.skipped() && step.model_nan) ++trace.model_nan_skips;
    if (step.applied() && step.all_flushed) trace.all_flushed.push_back(number);
    if (!step.decision.error.empty()) {
      trace.error = TraceError{std::string(step.decision.error), number};
    }
    if (step.nonfinite && !step.model_nan) {
      overflow_at_end = true;
      overflowed = i;
    }
    return true;
  });
  trace.final_scale = policy::scale_of(policy);
  if (!trace.scale.empty() && trace.scale.back().second != trace.final_scale) {
    overflow_at_end = false;
  }
  trace.outcome = outcome_of(policy, trace, overflow_at_end && near_end(overflowed, trace.length));
  add_flushed(trace, series);
}

}  // namespace

void step_through(policy::Policy& policy, const StepSeries& series, const SeeStep& see) {
  const bool follows = policy::needs_of(policy) == policy::Needs::magnitude;
  std::visit([&](auto& own) { step_through_as(own, follows, series, see); }, policy.variant());
}

std::vector<std::pair<std::size_t, const FlushedProfile*>> flushed_by_index(
    const StepSeries& series) {
  std::vector<std::pair<std::size_t, const FlushedProfile*>> profiles;
  for (const FlushedProfile& profile : series.flushed) {
    const auto at = std::ranges::lower_bound(series.steps, profile.step);
    if (at == series.steps.end() || *at != profile.step) continue;
    profiles.emplace_back(static_cast<std::size_t>(at - series.steps.begin()), &profile);
  }
  return profiles;
}

void add_flushed(Trace& trace, const StepSeries& series) {
  double low = 0, high = 0, n = 0;
  for (const auto& [index, profile] : flushed_by_index(series)) {
    if (index >= trace.length) break;
    const auto again = trace.last_scale.find(index);
    const double scale = again == trace.last_scale.end() ? trace.scale_at(index) : again->second;
    const underflow::Share share{profile->at(scale), profile->of};
    low += share.low();
    high += share.high();
    ++n;
    if (!trace.worst_flushed || share.high() > trace.worst_flushed->second) {
      trace.worst_flushed = {share.low(), share.high()};
      trace.worst_step = profile->step;
    }
  }
  if (n != 0) trace.mean_flushed = {low / n, high / n};
}

Trace replay(const policy::Policy& policy, const StepSeries& series) {
  Trace trace;
  trace.name = policy::info_of(policy).name;
  trace.policy = policy;
  if (!series.steps.empty()) trace.first_step = series.steps.front();
  policy::Policy own = policy;
  policy::start(own);
  if (const auto* of_a_tensor = policy::get_if<policy::TeDelayed>(own)) {
    replay_tensors(*of_a_tensor, series, trace);
  } else if (const auto* of_a_layer = policy::get_if<policy::Als>(own)) {
    replay_layers(*of_a_layer, series, trace);
  } else {
    replay_one(std::move(own), series, trace);
  }
  if (trace.unavailable.empty()) trace.untaken = series.steps.size() - trace.length;
  return trace;
}

std::vector<Trace> replay(const std::vector<policy::Policy>& policies, const StepSeries& series) {
  std::vector<Trace> traces(policies.size());
  tbb::parallel_for(std::size_t{0}, policies.size(),
                    [&](std::size_t i) { traces[i] = replay(policies[i], series); });
  return traces;
}

std::pair<double, double> Trace::lost() const {
  const std::size_t steps = length + untaken;
  if (steps == 0) return {0, 0};
  std::int64_t end = first_step + static_cast<std::int64_t>(steps);  // steps from here on are lost
  if (error) end = std::min(end, error->step);
  if (!applied_nonfinite.empty()) end = std::min(end, applied_nonfinite.front());
  const auto before = [end](const std::vector<std::int64_t>& list) {
    return static_cast<double>(std::lower_bound(list.begin(), list.end(), end) - list.begin());
  };
  const auto all = static_cast<double>(steps);
  const double surely = before(skipped) + all - static_cast<double>(end - first_step);
  const double perhaps = surely + before(unknown);  // no step is in both lists
  const auto share = [&](double lost, double flushed) {
    if (lost >= all) return 1.0;
    const double certain = before(all_flushed) / (all - lost);
    return lost / all + (1 - lost / all) * std::max(flushed, certain);
  };
  return {share(surely, mean_flushed ? mean_flushed->first : 0),
          share(perhaps, mean_flushed ? mean_flushed->second : 0)};
}

namespace {

/// Rounds to the three digits that are shown: smaller differences are no reason to prefer a policy.
double as_shown(double share) {
  if (!(share > 0)) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(share)) - 2);
  return std::round(share / unit) * unit;
}

}  // namespace

std::vector<std::size_t> ranked(const std::vector<Trace>& traces) {
  std::vector<std::size_t> order(traces.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool any_flushed = std::any_of(traces.begin(), traces.end(), [](const Trace& trace) {
    return trace.mean_flushed.has_value();
  });
  const auto key = [&](std::size_t i) {
    const Trace& trace = traces[i];
    if (!trace.unavailable.empty()) return std::tuple(3, 0.0, 0.0, 0.0, i);
    const int known = any_flushed && !trace.mean_flushed ? 1 : 0;
    const auto [low, high] = trace.lost();
    return std::tuple(trace.error ? 2 : known, as_shown(high), low, -trace.final_scale, i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

}  // namespace halfscope::analyzers::replay
