// SPDX-License-Identifier: Apache-2.0
// Settings for dynamic loss scaling, and how many of the recorded steps they skip.
#include <fmt/format.h>

#include <algorithm>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/recommend/step_maxima.hpp"
#include "analyzers/replay/replay.hpp"

namespace halfscope::analyzers::recommend {

using replay::StepSeries;

namespace {

/// The largest scale at which no recorded step overflows.
std::optional<int> highest_safe(const std::vector<LogMaxima>& logs) {
  std::optional<int> safe;
  for (const LogMaxima& log : logs) {
    for (const int highest : log.highest_log2) {
      safe = std::min(safe.value_or(underflow::kLastLog2Scale), highest);
    }
  }
  return safe;
}

bool has_gaps(const StepSeries& series) {
  for (std::size_t i = 1; i < series.steps.size(); ++i) {
    if (series.steps[i] != series.steps[i - 1] + 1) return true;
  }
  return series.steps.size() < 2;
}

/// Adds what the settings skip in one log.
void replay_one(const policy::Policy& settings, const StepSeries& series, ReplayedSkips& to) {
  const replay::Trace trace = replay::replay(settings, series);
  to.steps += trace.length;
  to.skipped += Interval(trace.skipped.size(), trace.skipped.size() + trace.unknown.size());
}

std::optional<ReplayedSkips> replayed(const DynamicAdvice& advice, const replay::LogSeries& logs) {
  const bool all =
      logs.none.empty() && !logs.series.empty() && std::ranges::none_of(logs.series, has_gaps);
  if (!all) return std::nullopt;
  const policy::Policy settings = policy::make(fmt::format(
      "torch,init_scale=2^{},growth_interval={}", advice.init_log2, advice.growth_interval));
  ReplayedSkips found;
  for (const StepSeries& series : logs.series) replay_one(settings, series, found);
  found.low = proportion(found.skipped.low, found.steps).low;
  found.high = proportion(found.skipped.high, found.steps).high;
  return found;
}

}  // namespace

std::optional<DynamicAdvice> dynamic_advice(const Recommendation& advice,
                                            const std::vector<LogMaxima>& maxima,
                                            const replay::LogSeries& series) {
  if (!advice.static_log2) return std::nullopt;
  const std::optional<int> safe = highest_safe(maxima);
  if (!safe) return std::nullopt;
  DynamicAdvice dynamic;
  // Tables may know of larger gradients than those of steps whose maxima are known.
  dynamic.init_log2 = std::min(*safe, advice.highest_log2.value_or(*safe) + advice.headroom_asked);
  dynamic.replayed = replayed(dynamic, series);
  dynamic.why = fmt::format(
      "init_scale is the largest power of two at which no recorded step overflows: headroom costs "
      "nothing here, since an overflow skips one step and halves the scale. After every {} clean "
      "steps the scale doubles, as it does by default in PyTorch.",
      dynamic.growth_interval);
  return dynamic;
}

}  // namespace halfscope::analyzers::recommend
