// SPDX-License-Identifier: Apache-2.0
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "analyzers/replay/policy_facts.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/underflow/share.hpp"
#include "halfscope/policy/variant.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// The losses of one combination of settings.
struct Candidate {
  Combination settings;

  bool counted = false;    ///< false if counting stopped early: another candidate is better
  bool ends = false;       ///< training ends, by an error or by an infinity in the weights
  std::uint64_t lost = 0;  ///< lost steps: upper bound
  std::uint64_t lost_at_least = 0;  ///< lost steps: lower bound
  std::uint64_t all_flushed = 0;    ///< further steps whose gradients are surely all flushed
  double underflow_risk = 0;        ///< thinness() summed over the other steps
  std::optional<std::pair<double, double>> flushed;  ///< mean share: [low, high]
};

/// Returns how near a step is to losing every gradient: 0 if the largest scaled gradient is 1 or
/// more, so that flushed gradients are below 2^-25 of it; 1 if the largest is flushed itself.
/// Replaces the flushed share if that is unknown.
double thinness(const AttemptMagnitudes& seen, double scale) {
  const double largest = seen.max_abs * scale;
  if (!(largest < 1) || seen.max_abs == 0) return 0;
  return std::min(1.0, std::log2(largest) / std::log2(kVanishes));
}

using Profiles = std::vector<std::pair<std::size_t, const FlushedProfile*>>;

/// Counts the losses of one candidate step by step.
class Counter {
 public:
  Counter(Candidate& candidate, const StepSeries& series, const Profiles& profiles)
      : to_(candidate), series_(series), profiles_(profiles), next_(profiles.begin()) {}

  void add(std::size_t i, const Stepped& step) {
    if (!step.decision.error.empty() || step.applied_nonfinite()) return end(i);
    // Extra attempts at a step that no setting saves are no reason to prefer a setting.
    const std::uint64_t lost =
        (step.skipped() ? 1 : 0) + (step.model_nan ? 0 : std::uint64_t{step.attempts} - 1);
    to_.lost_at_least += lost;
    to_.lost += lost + (step.unknown ? 1 : 0);
    if (step.applied() && !step.unknown) {
      if (step.all_flushed) {
        ++to_.all_flushed;
      } else {
        to_.underflow_risk += thinness(series_.seen[i], step.last_scale);
      }
    }
    if (next_ == profiles_.end() || next_->first != i) return;
    const underflow::Share share{next_->second->at(step.last_scale), next_->second->of};
    low_ += share.low();
    high_ += share.high();
    ++seen_;
    ++next_;
  }

  void finish() {
    if (profiles_.empty()) return;
    const auto of = static_cast<double>(std::max<std::size_t>(seen_, 1));
    const std::uint64_t steps = series_.seen.size();
    const auto applied = static_cast<double>(steps - std::min(to_.lost, steps));
    const double certain = applied == 0 ? 0 : static_cast<double>(to_.all_flushed) / applied;
    to_.flushed = {std::max(low_ / of, certain), std::max(high_ / of, certain)};
  }

 private:
  /// Counts all steps from index i on as lost.
  void end(std::size_t i) {
    to_.ends = true;
    to_.lost_at_least += series_.seen.size() - i;
    to_.lost += series_.seen.size() - i;
  }

  Candidate& to_;
  const StepSeries& series_;
  const Profiles& profiles_;
  Profiles::const_iterator next_;
  double low_ = 0, high_ = 0;
  std::size_t seen_ = 0;  ///< steps with histograms
};

/// The sort key of settings: smaller is better, and earlier fields decide first.
struct Loss {
  int ends = 0;          ///< 1 if training ends early
  int above_target = 0;  ///< 1 if the flushed share may be above the target
  /// Lost steps: upper bound. Without histograms also steps whose gradients are all flushed, and
  /// the thinness of others. Above the target instead: the lost share of all values.
  double most = 0;
  double least = 0;  ///< lower bound of the same number
};

Loss loss_of(const Candidate& c, const StepSeries& series, double target) {
  const auto most = static_cast<double>(c.lost), least = static_cast<double>(c.lost_at_least);
  const int ends = c.ends ? 1 : 0;
  if (!c.flushed) {
    const double flushed = static_cast<double>(c.all_flushed) + c.underflow_risk;
    return {ends, 0, most + flushed, least + flushed};
  }
  const auto [low, high] = *c.flushed;
  if (high <= target) return {ends, 0, most, least};
  const auto share = [&](double lost, double flushed) {
    const double of_steps = std::min(1.0, lost / static_cast<double>(series.seen.size()));
    return of_steps + (1 - of_steps) * flushed;
  };
  return {ends, 1, share(most, high), share(least, low > target ? low : 0)};
}

/// Returns true if the candidate is known to keep the target.
bool keeps(const Candidate& c, double target) { return c.flushed && c.flushed->second <= target; }

/// Counts the losses of a candidate; stops when it has lost more than `best`.
void count(Candidate& candidate, const StepSeries& series, const Profiles& profiles,
           const std::atomic<double>& best) {
  Counter counter(candidate, series, profiles);
  bool given_up = false;
  policy::Policy policy = candidate.settings.policy;
  policy::start(policy);
  step_through(policy, series, [&](std::size_t i, const Stepped& step) {
    counter.add(i, step);
    given_up = static_cast<double>(candidate.lost) > best;
    return !given_up && !candidate.ends;
  });
  counter.finish();
  candidate.counted = !given_up;
}

/// Losses that differ by less than this factor count as equal.
constexpr double kHardly = 1.01;

/// Counts all candidates in parallel. A candidate is given up only if another one within the target
/// loses less, so their order does not matter.
void count_all(std::vector<Candidate>& all, const StepSeries& series, const Profiles& profiles,
               double target) {
  std::atomic<double> best = std::numeric_limits<double>::infinity();
  tbb::parallel_for(std::size_t{0}, all.size(), [&](std::size_t i) {
    Candidate& candidate = all[i];
    count(candidate, series, profiles, best);
    const Loss loss = loss_of(candidate, series, target);
    if (!candidate.counted || loss.ends != 0 || loss.above_target != 0) return;
    const double most = loss.most * kHardly;
    double now = best;
    while (most < now && !best.compare_exchange_weak(now, most)) {
    }
  });
}

const Candidate* best_of(const std::vector<Candidate>& all, const StepSeries& series, double target,
                         double interval) {
  const auto worst = [&](const Candidate& c) {
    const Loss loss = loss_of(c, series, target);
    return std::tuple(loss.ends, loss.above_target, loss.most);
  };
  const Candidate* first = nullptr;
  for (const Candidate& c : all) {
    if (c.counted && (first == nullptr || worst(c) < worst(*first))) first = &c;
  }
  if (first == nullptr) return nullptr;
  const auto [ends, above, most] = worst(*first);
  const auto limit = std::tuple(ends, above, most * kHardly);
  const auto key = [&](const Candidate& c) {
    const bool known = keeps(c, target);
    const double far = std::abs(std::log2(c.settings.interval) - std::log2(interval));
    // If flushing is unknown: a larger scale flushes no more.
    const double size = known ? c.settings.initial : -c.settings.initial;
    return std::tuple(loss_of(c, series, target).least, c.flushed ? c.flushed->second : 0,
                      known ? 0 : c.underflow_risk, far, size);
  };
  const Candidate* best = nullptr;
  for (const Candidate& c : all) {
    if (!c.counted || worst(c) > limit) continue;
    if (best == nullptr || key(c) < key(*best)) best = &c;
  }
  return best;
}

/// Returns true if the policy's own settings are no worse than another candidate, and do not start
/// at a scale that is too large.
bool as_good(const Candidate& own, const Candidate& other, const StepSeries& series,
             const Safe& safe, double target) {
  const policy::Policy& policy = own.settings.policy;
  const double start = policy::scale_of(policy);
  if (start > std::ldexp(1.0, safe.most) || start > policy::limits_of(policy).ceiling) return false;
  const Loss its = loss_of(own, series, target), loss = loss_of(other, series, target);
  if (its.ends != loss.ends) return its.ends < loss.ends;
  if (its.above_target != loss.above_target) return its.above_target < loss.above_target;
  const bool known = keeps(own, target);
  const double hardly = known ? 1 : kHardly;
  if (its.most > loss.most * hardly || its.least > loss.least * hardly) return false;
  return known || own.underflow_risk <= other.underflow_risk +
                                            (kHardly - 1) * static_cast<double>(series.seen.size());
}

/// Returns true if settings lose so little that a change is not worth it. Up to kFewSteps steps are
/// the cost of finding the scale.
bool loses_little(const policy::Policy& policy, const StepSeries& series,
                  const underflow::RecommendOptions& targets, const Harmless& harmless) {
  constexpr double kFewSteps = 3, kFewShare = 0.01;
  if (!harmless) return false;
  const Trace trace = replay(policy, series);
  if (trace.error || !trace.applied_nonfinite.empty() || trace.scale.empty()) return false;
  const auto skipped = static_cast<double>(trace.skipped.size() + trace.unknown.size());
  const auto length = static_cast<double>(trace.length);
  if (skipped > kFewShare * length &&
      (skipped > kFewSteps || skipped >= targets.serious_share * length)) {
    return false;
  }
  double least = trace.scale.front().second;
  for (const auto& [from, scale] : trace.scale) least = std::min(least, scale);
  return least > 0 && harmless(std::ilogb(least));
}

}  // namespace

bool tunable(const policy::Policy& policy) {
  const policy::Info& info = policy::info_of(policy);
  if (info.initial.empty() || info.interval.empty()) return false;
  if (const auto* apex = policy::get_if<policy::Apex>(policy)) return !apex->loss_scale;
  if (const auto* fastai = policy::get_if<policy::Fastai1>(policy)) return fastai->dynamic;
  if (const auto* fastai = policy::get_if<policy::Fastai2>(policy)) return fastai->dynamic;
  return true;
}

std::optional<TunedPolicy> tune(const policy::Policy& policy, const StepSeries& series,
                                const underflow::RecommendOptions& targets,
                                const Harmless& harmless) {
  const double target_underflow = targets.target_underflow;
  if (!tunable(policy) || series.seen.empty()) return std::nullopt;
  const std::optional<Safe> safe = safe_scales(series);
  if (!safe) return std::nullopt;
  std::vector<Candidate> all;
  for (Combination& settings : combinations(policy, series, *safe)) {
    all.emplace_back().settings = std::move(settings);
  }
  const Profiles profiles = flushed_by_index(series);
  count_all(all, series, profiles, target_underflow);
  const double interval = policy::number_of(policy, knobs_of(policy).interval).value_or(2000);
  const Candidate* best = best_of(all, series, target_underflow, interval);
  if (best == nullptr) return std::nullopt;  // the framework rejects all settings of the grid
  Candidate own;
  own.settings.policy = policy;
  count(own, series, profiles, std::numeric_limits<double>::infinity());
  TunedPolicy tuned;
  tuned.name = policy::info_of(policy).name;
  tuned.kept = as_good(own, *best, series, *safe, target_underflow) ||
               loses_little(policy, series, targets, harmless);
  tuned.trace = replay(tuned.kept ? policy : best->settings.policy, series);
  tuned.initial = tuned.kept ? policy::scale_of(policy) : best->settings.initial;
  tuned.interval = static_cast<std::uint64_t>(tuned.kept ? interval : best->settings.interval);
  tuned.text = policy::short_text_of(tuned.trace.policy);
  const auto& flushed = tuned.trace.mean_flushed;
  tuned.within_target = flushed && flushed->second <= target_underflow;
  if (!tuned.within_target && keeps(own, target_underflow)) {
    tuned.own_within_target = replay(policy, series);
  }
  tuned.tried = all.size();
  tuned.stopped_by = what_stops(tuned, series, target_underflow);
  return tuned;
}

}  // namespace halfscope::analyzers::replay
