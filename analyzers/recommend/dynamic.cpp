// SPDX-License-Identifier: Apache-2.0
// Settings for dynamic loss scaling, and how many of the recorded steps they skip.
#include <fmt/format.h>

#include <cmath>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/replay/replay.hpp"

namespace halfscope::analyzers::recommend {
namespace {

/// Adds what a replay skips.
void add(const replay::Trace& trace, ReplayedSkips& to) {
  to.steps += trace.length;
  to.skipped += Interval(trace.skipped.size(), trace.skipped.size() + trace.unknown.size());
}

void bound(ReplayedSkips& skips) {
  skips.low = proportion(skips.skipped.low, skips.steps).low;
  skips.high = proportion(skips.skipped.high, skips.steps).high;
}

DynamicAdvice best_of(const replay::TunedPolicy& tuned) {
  DynamicAdvice advice{tuned.initial,      tuned.interval, ReplayedSkips(),
                       tuned.trace.policy, tuned.tried,    tuned.kept};
  add(tuned.trace, *advice.replayed);
  bound(*advice.replayed);
  return advice;
}

/// What PyTorch's scaler skips with the settings.
ReplayedSkips replayed(const DynamicAdvice& advice, std::span<const replay::StepSeries> runs) {
  const policy::Policy settings = policy::make(
      fmt::format("torch,init_scale={},growth_interval={}", advice.init, advice.growth_interval));
  ReplayedSkips found;
  for (const replay::StepSeries& run : runs) add(replay::replay(settings, run), found);
  bound(found);
  return found;
}

}  // namespace

std::optional<DynamicAdvice> dynamic_advice(const Recommendation& advice, const Runs& runs) {
  if (!advice.static_log2) return std::nullopt;
  if (runs.tuned != nullptr) return best_of(*runs.tuned);
  // Headroom costs nothing here: an overflow skips one step, and halves the scale.
  DynamicAdvice twice;
  twice.init = std::ldexp(1.0, *advice.static_log2 + 1);
  if (!runs.series.empty()) twice.replayed = replayed(twice, runs.series);
  return twice;
}

}  // namespace halfscope::analyzers::recommend
