// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/policy_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "analyzers/replay/replay_loop.hpp"

namespace halfscope::analyzers::replay {

std::string scale_words(double scale) {
  int exponent = 0;
  const bool power = scale > 0 && std::isfinite(scale) && std::frexp(scale, &exponent) == 0.5;
  const bool plain = exponent > 0 && exponent <= 21;
  return power && !plain ? fmt::format("2^{}", exponent - 1) : fmt::format("{}", scale);
}

std::string steps_words(std::size_t count) {
  return fmt::format("{} step{}", count, count == 1 ? "" : "s");
}

std::string setting_words(const policy::Policy& policy, std::string_view setting) {
  const bool file = policy::limits_of(policy).whole_numbers;  // true for DeepSpeed
  if (file && setting == "min_scale") return "min_scale (min_loss_scale in the configuration file)";
  if (file && setting == "delayed_shift") {
    return "delayed_shift (hysteresis in the configuration file)";
  }
  return std::string(setting);
}

double smallest_scale(const policy::Policy& policy) {
  const bool narrow = policy::info_of(policy).arithmetic == policy::Arithmetic::binary32;
  return narrow ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
}

std::size_t index_of(const StepSeries& series, std::int64_t step) {
  return static_cast<std::size_t>(std::lower_bound(series.steps.begin(), series.steps.end(), step) -
                                  series.steps.begin());
}

bool by_scale(const StepSeries& series, std::int64_t step) {
  return !in_model(series.seen[index_of(series, step)]);
}

std::string Holds::text() const {
  if (sure) return scale_words(power);
  return fmt::format("at most {} (how much less is unknown: what was recorded is {})",
                     scale_words(power), at_least ? "the least that it can be" : "infinite");
}

Holds holds(const StepSeries& series, std::int64_t step) {
  const AttemptMagnitudes& seen = series.seen[index_of(series, step)];
  const bool finite = std::isfinite(seen.max_abs);
  const double by_gradients = finite ? kOverflow / seen.max_abs : seen.overflow_from;
  const double limit = std::min(by_gradients, kOverflow / seen.loss);
  const double power = std::exp2(std::floor(std::log2(limit)));
  return {power < limit ? power : power / 2, finite && !seen.partial, finite && seen.partial};
}

double least_by_overflow(const Trace& trace, const StepSeries& series) {
  double least = trace.scale.empty() ? 0 : trace.scale.front().second;
  for (const std::int64_t step : trace.skipped) {
    // At most one backoff below the scale that it needs; the known backoff factors are at most 16.
    if (by_scale(series, step)) least = std::min(least, holds(series, step).power / 16);
  }
  return least;
}

}  // namespace halfscope::analyzers::replay
