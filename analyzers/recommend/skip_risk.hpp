// SPDX-License-Identifier: Apache-2.0
// How likely a step overflows at a scale, given the steps that were recorded.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace halfscope::analyzers::recommend {

/// The largest magnitude of one step: log2, unscaled.
struct StepMaximum {
  std::int64_t step = 0;
  double log2_max = 0;    ///< +infinity where it was not finite
  bool censored = false;  ///< it may have been larger: an infinity in FP16 data
};

enum class RiskMethod : std::uint8_t {
  binomial,      ///< no model: at most 3 / n where none of n steps exceeded (rule of three)
  extreme_value  ///< generalized Pareto tail over a high threshold, after removing the trend
};
std::string_view name_of(RiskMethod method);

/// Probability that a step's largest magnitude reaches a limit. Of extreme_value: of a step like
/// the last one recorded, the trend's value there.
struct SkipRisk {
  RiskMethod method = RiskMethod::binomial;
  std::uint64_t steps = 0;        ///< recorded
  std::uint64_t exceedances = 0;  ///< of them at or above the limit
  double probability = 0;         ///< estimate, per step
  double low = 0, high = 0;       ///< interval, whatever the tail
  /// Of extreme_value: the same if larger steps carry on the tail of those recorded. Never wider.
  double tail_low = 0, tail_high = 0;
  double confidence = 0.95;   ///< of the interval
  double trend = 0;           ///< removed slope of log2 max, binades per step
  double trend_error = 0;     ///< its standard error
  std::uint64_t perhaps = 0;  ///< steps below the limit as far as they are known: censored
};

/// Steps from which on a tail is fitted, and the most of them, the last ones, that it is fitted to.
inline constexpr std::size_t kLeastForTail = 100;
inline constexpr std::size_t kMostForTail = 4096;

/// limit_log2: log2 of the smallest unscaled magnitude that overflows. From 100 steps on the tail
/// is fitted, with a bootstrap interval; deterministic for a seed. docs/numerics.md has the method.
SkipRisk skip_risk(std::span<const StepMaximum> steps, double limit_log2, std::uint64_t seed = 1);

/// The same for many limits: the tail is fitted once. No end rises with the limit.
std::vector<SkipRisk> skip_risks(std::span<const StepMaximum> steps,
                                 std::span<const double> limits_log2, std::uint64_t seed = 1);

}  // namespace halfscope::analyzers::recommend
