// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <tuple>

#include "analyzers/policy_advice.hpp"
#include "analyzers/policy_facts.hpp"
#include "analyzers/replay_loop.hpp"
#include "analyzers/step_facts.hpp"

namespace halfscope::analyzers {
namespace {

/// One combination of settings.
struct Candidate {
  policy::Policy policy;
  double initial = 0, interval = 0;

  bool counted = false;           ///< false where it was given up: another is better
  std::uint64_t lost = 0;         ///< at most
  std::uint64_t surely = 0;       ///< of these
  std::optional<double> flushed;  ///< mean share, its upper bound
};

/// "key=value" of a policy's text, the name first.
std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    pieces.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return pieces;
}

std::string joined(const std::vector<std::string>& pieces) {
  return fmt::format("{}", fmt::join(pieces, ","));
}

std::string key_of(const std::string& piece) { return piece.substr(0, piece.find('=')); }

/// The policy with some settings replaced; empty where these do not go together.
std::optional<policy::Policy> with(const std::vector<std::string>& pieces,
                                   const std::vector<std::pair<std::string_view, double>>& values) {
  std::vector<std::string> changed = pieces;
  for (std::string& piece : changed) {
    for (const auto& [key, value] : values) {
      if (key_of(piece) == key) piece = fmt::format("{}={}", key, value);
    }
  }
  try {
    return policy::make(joined(changed));
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

constexpr std::size_t kEnoughSteps = 100;  ///< fewer say little of larger gradients to come

/// log2 of the largest scales that hold the largest gradient of all steps, and of the largest to
/// begin with: a binade above what holds half of the steps, and for short series with a binade to
/// spare, as the static scale has.
struct Safe {
  int all = 0, most = 0;
};

/// Empty where no step tells a scale: all are zero, or have what no scale cures.
std::optional<Safe> safe_scales(const StepSeries& series) {
  std::vector<double> largest;
  for (const Seen& seen : series.seen) {
    double max_abs = seen.max_abs;
    if (!std::isfinite(max_abs)) max_abs = kOverflow / seen.overflow_from;  // at least
    if (std::isfinite(max_abs) && max_abs > 0) largest.push_back(max_abs);
  }
  if (largest.empty()) return std::nullopt;
  const auto log2_of = [](double max_abs) {
    return std::clamp(highest_safe_log2(magnitude_of(max_abs), 1.0, kBinary16), -100, 100);
  };
  const auto middle = largest.begin() + static_cast<std::ptrdiff_t>(largest.size() / 2);
  std::nth_element(largest.begin(), middle, largest.end());
  const int half = log2_of(*middle);
  const int all = log2_of(*std::max_element(largest.begin(), largest.end()));
  int most = half + 1;
  if (series.seen.size() < kEnoughSteps) most = std::min(most, all - 1);
  return Safe{all, most};
}

/// The names of what is varied, and what the framework takes.
struct Knobs {
  std::string_view initial, interval, floor;
  policy::Limits limits;
};

Knobs knobs_of(const policy::Policy& policy) {
  const policy::Info& info = policy::info_of(policy);
  Knobs knobs{info.initial, info.interval, info.floor, policy::limits_of(policy)};
  // OpenSeq2Seq has no setting for the start: that is its ceiling.
  const auto* backoff = std::get_if<policy::Os2sBackoff>(&policy);
  if (backoff != nullptr && !backoff->initial_scale) knobs.initial = info.ceiling;
  return knobs;
}

/// The axes of the grid.
struct Grid {
  std::vector<double> initial, interval;
  std::vector<std::optional<double>> floor;  ///< empty: as it is

  std::size_t size() const { return initial.size() * interval.size() * floor.size(); }
};

void keep_every_second(std::vector<double>& axis) {
  std::vector<double> kept;
  for (std::size_t i = 0; i < axis.size(); i += 2) kept.push_back(axis[i]);
  axis = std::move(kept);
}

/// log2 of the least and the largest scale that a policy can be told to start at.
std::pair<int, int> startable(const policy::Limits& limits) {
  constexpr int kBeyondAll = 200;
  int least = -kBeyondAll, most = kBeyondAll;
  if (limits.floor_is_fixed && limits.floor > 0) {
    least = static_cast<int>(std::ceil(std::log2(limits.floor)));
  }
  if (limits.whole_numbers) least = std::max(least, 0);
  if (std::isfinite(limits.ceiling)) {
    most = static_cast<int>(std::floor(std::log2(limits.ceiling)));
  }
  return {std::min(least, most), most};
}

std::vector<double> initial_scales(const policy::Limits& limits, const Safe& safe) {
  const auto [least, most] = startable(limits);
  const int last = std::clamp(safe.most, least, most);
  const int first = std::clamp(std::min(safe.all - 1, safe.most), least, last);
  const int stride = std::max(1, (last - first + 2) / 10);
  std::vector<double> scales;
  for (int k = first; k < last; k += stride) scales.push_back(std::ldexp(1.0, k));
  scales.push_back(std::ldexp(1.0, last));
  return scales;
}

/// The usual ones, "never", that of the policy first, and such short ones as a short run needs to
/// grow at all.
std::vector<double> intervals(std::optional<double> now, std::size_t steps) {
  constexpr double kNever = std::numeric_limits<std::int32_t>::max();
  std::vector<double> all = {2000, 1000, kNever, 500, 200, 100, 5000};
  for (const std::size_t few : {50, 20, 10}) {
    if (steps < 100 * few) all.push_back(static_cast<double>(few));
  }
  if (now && std::find(all.begin(), all.end(), *now) == all.end()) all.insert(all.begin(), *now);
  return all;
}

/// A floor that is in the way is lowered to the least scale that is needed.
std::vector<std::optional<double>> floors(const Knobs& knobs, const Safe& safe) {
  std::vector<std::optional<double>> all = {std::nullopt};
  const double needed = std::ldexp(1.0, std::min(safe.all - 1, safe.most));
  if (knobs.limits.floor_is_fixed || knobs.floor.empty() || knobs.limits.floor <= needed) {
    return all;
  }
  all.emplace_back(knobs.limits.whole_numbers ? std::floor(needed) : needed);
  return all;
}

/// Initial scales around the safe ones. For long runs every second value is left out until all of
/// the grid takes no more than kMostSteps steps, so that time is bounded.
Grid grid_for(const policy::Policy& policy, const Knobs& knobs, const StepSeries& series,
              const Safe& safe) {
  constexpr double kMostSteps = 2e8;
  Grid grid{initial_scales(knobs.limits, safe),
            intervals(policy::number_of(policy, knobs.interval), series.seen.size()),
            floors(knobs, safe)};
  const auto too_long = [&] {
    return static_cast<double>(grid.size()) * static_cast<double>(series.seen.size()) > kMostSteps;
  };
  while (too_long() && grid.initial.size() > 1) keep_every_second(grid.initial);
  while (too_long() && grid.interval.size() > 1) keep_every_second(grid.interval);
  return grid;
}

std::vector<Candidate> candidates(const policy::Policy& policy, const Knobs& knobs,
                                  const Grid& grid) {
  const std::vector<std::string> pieces = pieces_of(policy::text_of(policy));
  std::vector<Candidate> all;
  for (const double initial : grid.initial) {
    for (const double interval : grid.interval) {
      for (const std::optional<double> floor : grid.floor) {
        std::vector<std::pair<std::string_view, double>> values = {{knobs.initial, initial},
                                                                   {knobs.interval, interval}};
        if (floor) values.emplace_back(knobs.floor, *floor);
        const auto made = with(pieces, values);
        if (!made || initial < policy::limits_of(*made).floor) continue;
        all.emplace_back();
        all.back().policy = *made;
        all.back().initial = initial;
        all.back().interval = interval;
      }
    }
  }
  return all;
}

/// Indices of the steps that have tables, and what is flushed there.
using Profiles = std::vector<std::pair<std::size_t, const FlushedProfile*>>;

Profiles profiles_of(const StepSeries& series) {
  Profiles profiles;
  for (const FlushedProfile& profile : series.flushed) {
    const auto at = std::lower_bound(series.steps.begin(), series.steps.end(), profile.step);
    if (at == series.steps.end() || *at != profile.step) continue;
    profiles.emplace_back(static_cast<std::size_t>(at - series.steps.begin()), &profile);
  }
  return profiles;
}

/// Counts what a candidate loses; gives it up once it has lost more than `best`, or more than any
/// sensible one.
void count(Candidate& candidate, const StepSeries& series, const Profiles& profiles,
           const std::atomic<std::uint64_t>& best) {
  double flushed = 0;
  bool ended = false;
  auto next = profiles.begin();
  const auto of_step = [&](std::size_t i, const Stepped& step) {
    const std::uint64_t lost =
        step.attempts - 1 + (step.skipped() || step.applied_nonfinite() ? 1 : 0);
    candidate.surely += lost;
    candidate.lost += lost + (step.unknown ? 1 : 0);
    if (next != profiles.end() && next->first == i) {
      const Share share{next->second->at(step.scale), next->second->of};
      flushed += share.high();
      ++next;
    }
    ended = ended || !step.decision.error.empty();
    return candidate.lost <= std::min<std::uint64_t>(best, 2 * series.seen.size());
  };
  bool given_up = false;
  std::visit(
      [&](auto policy) {
        policy.start();
        step_through(policy, series, [&](std::size_t i, const Stepped& step) {
          given_up = !of_step(i, step);
          return !given_up;
        });
      },
      candidate.policy);
  candidate.counted = !given_up && !ended;
  if (!profiles.empty()) candidate.flushed = flushed / static_cast<double>(profiles.size());
}

/// Counts all, in any order: a candidate is given up only where another that is within the target
/// surely lost less.
void count_all(std::vector<Candidate>& all, const StepSeries& series, double target) {
  const Profiles profiles = profiles_of(series);
  std::atomic<std::uint64_t> best = std::numeric_limits<std::uint64_t>::max();
  tbb::parallel_for(std::size_t{0}, all.size(), [&](std::size_t i) {
    Candidate& candidate = all[i];
    count(candidate, series, profiles, best);
    const bool within = !candidate.flushed || *candidate.flushed <= target;
    if (!candidate.counted || !within) return;
    std::uint64_t now = best;
    while (candidate.lost < now && !best.compare_exchange_weak(now, candidate.lost)) {
    }
  });
}

/// What is to be as small as can be, the first first.
struct Loss {
  int above_target = 0;      ///< 1 where the flushed share is
  double lost = 0;           ///< steps, at most; above the target the share of all values
  std::uint64_t surely = 0;  ///< steps

  auto operator<=>(const Loss&) const = default;
};

Loss loss_of(const Candidate& c, const StepSeries& series, double target) {
  const double share = c.flushed.value_or(0), lost = static_cast<double>(c.lost);
  if (share <= target) return {0, lost, c.surely};
  const double of_steps = std::min(1.0, lost / static_cast<double>(series.seen.size()));
  return {1, of_steps + (1 - of_steps) * share, c.surely};
}

const Candidate* best_of(const std::vector<Candidate>& all, const StepSeries& series, double target,
                         double interval) {
  const auto key = [&](const Candidate& c) {
    const double far = std::abs(std::log2(c.interval) - std::log2(interval));
    // Without tables nobody knows what a small scale flushes: then the largest is taken.
    const double size = c.flushed ? c.initial : -c.initial;
    return std::tuple(loss_of(c, series, target), c.flushed.value_or(0), far, size);
  };
  const Candidate* best = nullptr;
  for (const Candidate& candidate : all) {
    if (!candidate.counted) continue;
    if (best == nullptr || key(candidate) < key(*best)) best = &candidate;
  }
  return best;
}

/// Whether the policy, as it is, does no worse than another and starts at no scale that is too
/// large; without tables, where nobody knows what a small one flushes, nor at a smaller one.
bool as_good(const policy::Policy& policy, const Candidate& other, const StepSeries& series,
             const Safe& safe, double target) {
  const double start = policy::scale_of(policy);
  if (start > std::ldexp(1.0, safe.most) || start > policy::limits_of(policy).ceiling) return false;
  if (series.flushed.empty() && start < other.initial) return false;
  Candidate own;
  own.policy = policy;
  const std::atomic<std::uint64_t> no_limit = std::numeric_limits<std::uint64_t>::max();
  count(own, series, profiles_of(series), no_limit);
  constexpr double kHardly = 1.01;  // of a share that is lost in any case, no reason to change
  Loss loss = loss_of(other, series, target);
  if (loss.above_target != 0) loss.lost *= kHardly;
  const Loss its = loss_of(own, series, target);
  return own.counted && its <= loss && its.surely <= loss.surely;
}

}  // namespace

bool tunable(const policy::Policy& policy) {
  const policy::Info& info = policy::info_of(policy);
  if (info.initial.empty() || info.interval.empty()) return false;
  if (const auto* apex = std::get_if<policy::Apex>(&policy)) return !apex->loss_scale;
  if (const auto* fastai = std::get_if<policy::Fastai1>(&policy)) return fastai->dynamic;
  if (const auto* fastai = std::get_if<policy::Fastai2>(&policy)) return fastai->dynamic;
  return true;
}

std::optional<TunedPolicy> tune(const policy::Policy& policy, const StepSeries& series,
                                double target_underflow) {
  if (!tunable(policy) || series.seen.empty()) return std::nullopt;
  const std::optional<Safe> safe = safe_scales(series);
  if (!safe) return std::nullopt;
  const Knobs knobs = knobs_of(policy);
  std::vector<Candidate> all = candidates(policy, knobs, grid_for(policy, knobs, series, *safe));
  count_all(all, series, target_underflow);
  const double interval = policy::number_of(policy, knobs.interval).value_or(2000);
  const Candidate* best = best_of(all, series, target_underflow, interval);
  TunedPolicy tuned;
  tuned.name = policy::info_of(policy).name;
  tuned.kept = best == nullptr || as_good(policy, *best, series, *safe, target_underflow);
  tuned.trace = replay(tuned.kept ? policy : best->policy, series);
  tuned.text = policy::short_text_of(tuned.trace.policy);
  const auto& flushed = tuned.trace.mean_flushed;
  tuned.within_target = flushed && flushed->second <= target_underflow;
  tuned.tried = all.size();
  tuned.stopped_by = what_stops(tuned, series, target_underflow);
  return tuned;
}

}  // namespace halfscope::analyzers
