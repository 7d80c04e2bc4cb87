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
#include "analyzers/replay_loop.hpp"
#include "analyzers/step_facts.hpp"

namespace halfscope::analyzers {
namespace {

/// One combination of settings.
struct Candidate {
  policy::Policy policy;
  double initial = 0, interval = 0;

  bool counted = false;  ///< false where it was given up: another is better
  std::uint64_t lost = 0;
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

/// The value of a setting as a number; empty where it is none.
std::optional<double> number_of(const policy::Policy& policy, std::string_view key) {
  for (const auto& [name, value] : policy::settings_of(policy)) {
    if (name != key) continue;
    if (const auto* real = std::get_if<double>(&value)) return *real;
    if (const auto* count = std::get_if<std::int64_t>(&value)) return static_cast<double>(*count);
  }
  return std::nullopt;
}

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

/// The settings that differ from the defaults, where these alone make the same policy.
std::string short_text(const policy::Policy& policy) {
  const std::string whole = policy::text_of(policy);
  const std::vector<std::string> pieces = pieces_of(whole);
  const std::vector<std::string> defaults = pieces_of(policy::text_of(policy::make(pieces[0])));
  std::vector<std::string> changed = {pieces[0]};
  for (std::size_t i = 1; i < pieces.size(); ++i) {
    if (pieces[i] != defaults[i]) changed.push_back(pieces[i]);
  }
  const std::string text = joined(changed);
  return policy::text_of(policy::make(text)) == whole ? text : whole;
}

constexpr std::size_t kEnoughSteps = 100;  ///< fewer say little of larger gradients to come

/// log2 of the largest scales that hold the largest gradient of all steps, and half of the steps';
/// and of the largest to begin with: below every one at which the run overflowed, and for short
/// series with a binade to spare, as the static scale has.
struct Safe {
  int all = 0, half = 0, most = 0;
};

/// log2 of the largest power of two below the scales at which the run had infinities.
int below_overflow(const StepSeries& series) {
  double least = INFINITY;
  for (const Seen& seen : series.seen) {
    if (!std::isfinite(seen.max_abs) && seen.overflow_from > 0) {
      least = std::min(least, seen.overflow_from);
    }
  }
  return std::isfinite(least) ? static_cast<int>(std::ceil(std::log2(least))) - 1 : 100;
}

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
  int most = std::min(half + 1, below_overflow(series));
  if (series.seen.size() < kEnoughSteps) most = std::min(most, all - 1);
  return Safe{all, half, most};
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

/// Initial scales around the safe ones. For long runs every second value is left out until all of
/// the grid takes no more than kMostSteps steps, so that time is bounded.
Grid grid_for(const policy::Policy& policy, const StepSeries& series, const Safe& safe) {
  constexpr double kMostSteps = 2e8;
  const policy::Info& info = policy::info_of(policy);
  Grid grid;
  const int first = std::min(safe.all - 1, safe.most);
  const int stride = std::max(1, (safe.most - first + 2) / 10);
  for (int k = first; k <= safe.most; k += stride) {
    grid.initial.push_back(std::ldexp(1.0, k));
  }
  constexpr double kNever = std::numeric_limits<std::int32_t>::max();
  grid.interval = {2000, 1000, kNever, 500, 200, 100, 5000};
  const auto now = number_of(policy, info.interval);
  if (now && std::find(grid.interval.begin(), grid.interval.end(), *now) == grid.interval.end()) {
    grid.interval.insert(grid.interval.begin(), *now);
  }
  grid.floor = {std::nullopt};
  const auto floor = info.floor.empty() ? std::nullopt : number_of(policy, info.floor);
  const double needed = grid.initial.front();
  if (floor && needed < *floor) grid.floor.emplace_back(needed);
  const auto too_long = [&] {
    return static_cast<double>(grid.size()) * static_cast<double>(series.seen.size()) > kMostSteps;
  };
  while (too_long() && grid.initial.size() > 1) keep_every_second(grid.initial);
  while (too_long() && grid.interval.size() > 1) keep_every_second(grid.interval);
  return grid;
}

std::vector<Candidate> candidates(const policy::Policy& policy, const Grid& grid) {
  const policy::Info& info = policy::info_of(policy);
  const std::vector<std::string> pieces = pieces_of(policy::text_of(policy));
  std::vector<Candidate> all;
  for (const double initial : grid.initial) {
    for (const double interval : grid.interval) {
      for (const std::optional<double> floor : grid.floor) {
        std::vector<std::pair<std::string_view, double>> values = {{info.initial, initial},
                                                                   {info.interval, interval}};
        if (floor) values.emplace_back(info.floor, *floor);
        const auto made = with(pieces, values);
        if (!made) continue;
        const auto least = info.floor.empty() ? std::nullopt : number_of(*made, info.floor);
        if (least && initial < *least) continue;
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
    candidate.lost += step.attempts - 1;
    if (step.skipped() || step.applied_nonfinite() || step.unknown) ++candidate.lost;
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

const Candidate* best_of(const std::vector<Candidate>& all, double target, double interval) {
  const auto key = [&](const Candidate& c) {
    const double share = c.flushed.value_or(0);
    const bool within = share <= target;
    const double lost = static_cast<double>(c.lost);
    const double far = std::abs(std::log2(c.interval) - std::log2(interval));
    // Without tables nobody knows what a small scale flushes: then the largest is taken.
    const double size = c.flushed ? c.initial : -c.initial;
    return within ? std::tuple(0, lost, share, far, size) : std::tuple(1, share, lost, far, size);
  };
  const Candidate* best = nullptr;
  for (const Candidate& candidate : all) {
    if (!candidate.counted) continue;
    if (best == nullptr || key(candidate) < key(*best)) best = &candidate;
  }
  return best;
}

bool has_model_nan(const StepSeries& series) {
  return std::any_of(series.seen.begin(), series.seen.end(), [](const Seen& seen) {
    return !std::isfinite(seen.max_abs) && seen.overflow_from == 0;
  });
}

Candidate counted(const policy::Policy& policy, const StepSeries& series) {
  Candidate candidate;
  candidate.policy = policy;
  const std::atomic<std::uint64_t> no_limit = std::numeric_limits<std::uint64_t>::max();
  count(candidate, series, {}, no_limit);
  return candidate;
}

/// Whether a candidate loses fewer steps than another, which may have ended training.
bool fewer(const Candidate& candidate, const Candidate& other) {
  return !other.counted || candidate.lost < other.lost;
}

}  // namespace

std::optional<TunedPolicy> tune(const policy::Policy& policy, const StepSeries& series,
                                double target_underflow) {
  const policy::Info& info = policy::info_of(policy);
  const bool whole = info.needs != policy::Needs::tensors && info.needs != policy::Needs::layers;
  if (info.initial.empty() || info.interval.empty() || !whole) return std::nullopt;
  if (series.seen.empty()) return std::nullopt;
  const std::optional<Safe> safe = safe_scales(series);
  if (!safe) return std::nullopt;
  std::vector<Candidate> all = candidates(policy, grid_for(policy, series, *safe));
  count_all(all, series, target_underflow);
  const policy::Policy defaults = policy::make(info.name);
  const double interval = number_of(defaults, info.interval).value_or(2000);
  const Candidate* best = best_of(all, target_underflow, interval);
  if (best == nullptr || (has_model_nan(series) && !fewer(*best, counted(defaults, series)))) {
    best = nullptr;  // what no scale cures costs every setting the same
  }
  TunedPolicy tuned;
  tuned.name = info.name;
  tuned.trace = replay(best != nullptr ? best->policy : defaults, series);
  tuned.text = short_text(tuned.trace.policy);
  const auto& flushed = tuned.trace.mean_flushed;
  tuned.within_target = flushed && flushed->second <= target_underflow;
  tuned.tried = all.size();
  return tuned;
}

}  // namespace halfscope::analyzers
