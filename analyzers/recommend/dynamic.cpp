// SPDX-License-Identifier: Apache-2.0
// Settings for dynamic loss scaling, and how many steps it would skip.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/recommend/proportion.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/recommend/step_maxima.hpp"

namespace halfscope::analyzers::recommend {
namespace {

constexpr std::uint64_t kUsualInterval = 2000;  // torch, TensorFlow, MXNet, NNabla
constexpr std::uint64_t kLeastInterval = 100;   // about one step in a hundred is skipped
constexpr double kTwoSigma = 1.959964;
constexpr int kBelow = 24, kAbove = 12;  // binades around the first scale where the chain moves

/// Drift of log2 of the largest magnitudes in binades per step, as far as it is sure.
struct Drift {
  double low = 0, high = 0;
};

Drift drift_of(const SkipRisk& risk) {
  if (risk.method != RiskMethod::extreme_value) return {};
  const double margin = kTwoSigma * risk.trend_error;
  return {risk.trend - margin, risk.trend + margin};
}

/// Gradients that surely shrink need a scale that follows them: one doubling a binade.
std::uint64_t interval_for(const Drift& drift) {
  if (drift.high >= 0) return kUsualInterval;
  const double steps_per_binade = -2 / (drift.low + drift.high);
  const double usual = static_cast<double>(kUsualInterval);
  if (!(steps_per_binade < usual)) return kUsualInterval;
  return std::max(kLeastInterval, static_cast<std::uint64_t>(steps_per_binade));
}

/// The share of steps that are not finite at any scale: a policy skips these, too.
Proportion at_any_scale(const LogMaxima& log) {
  const auto left_out = static_cast<double>(log.left_out.size());
  if (log.left_out.empty()) return {};  // of what was never seen nothing is expected
  return binomial(left_out, left_out + static_cast<double>(log.steps.size()));
}

/// The chance of either: of a step that no scale saves, else of an overflow.
double either(double at_any_scale, double overflow) {
  return at_any_scale + (1 - at_any_scale) * overflow;
}

/// Adds what one log says to the rates. Ups and downs differ by the drift alone and an up takes G
/// clean steps, so with a drift of b binades a step at most (1 + G b) / (1 + G) is skipped,
/// whatever the tail; unless more than that is skipped at any scale.
void add_rates(DynamicAdvice& advice, const std::vector<SkipRisk>& risks, const Drift& drift,
               const Proportion& bad) {
  const double interval = static_cast<double>(advice.growth_interval);
  std::vector<double> estimates, lows, highs;
  for (const SkipRisk& risk : risks) {
    estimates.push_back(either(bad.estimate, risk.probability));
    lows.push_back(either(bad.low, risk.low));
    highs.push_back(either(bad.low, risk.high));
  }
  const double expected = long_run_skip_rate(estimates, advice.growth_interval);
  const double least = std::min({expected, long_run_skip_rate(lows, advice.growth_interval),
                                 long_run_skip_rate(highs, advice.growth_interval)});
  const double follows = std::max(0.0, -drift.low) * interval / (1 + interval);
  const double most =
      std::max(bad.high, (1 + interval * std::max(0.0, drift.high)) / (1 + interval));
  advice.skip_low = std::min({advice.skip_low, std::max(0.0, least - follows), most});
  advice.skip_high = std::max(advice.skip_high, std::min(1.0, most));
  advice.expected_skip_rate = std::max(advice.expected_skip_rate.value_or(0), expected);
}

std::string why(const DynamicAdvice& advice) {
  std::string text = fmt::format(
      "init_scale is the largest power of two at which no recorded step overflows: headroom costs "
      "nothing here, since an overflow skips one step and halves the scale. Every {} clean steps "
      "the scale doubles, and the first step it is too large for is skipped: at most one in {}, "
      "unless gradients grow",
      advice.growth_interval, advice.growth_interval + 1);
  if (advice.growth_interval != kUsualInterval) {
    text += fmt::format(
        "; growth_interval is below the usual {} because gradients shrink by a binade in about {} "
        "steps, and the scale should follow",
        kUsualInterval, advice.growth_interval);
  }
  if (advice.bad_steps != 0) {
    text += fmt::format(
        "; {} recorded {} NaN or infinite at any scale, and such steps are skipped, too",
        advice.bad_steps, advice.bad_steps == 1 ? "step is" : "steps are");
  }
  return text + ".";
}

/// Without a fit nothing is known of the drift, and the steps to come may all be larger: then the
/// chance that a step overflows at the first scale is the only bound.
void bound_by_counting(DynamicAdvice& advice, const SkipRisk& at_first, const Proportion& bad) {
  advice.skip_low = 0;
  advice.skip_high = std::max(advice.skip_high, either(bad.high, at_first.high));
}

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

}  // namespace

// Over visits to scales this is a birth-death chain, which has as many ups as downs between
// neighbours. A visit at overflow chance p ends in an overflow with 1 - (1 - p)^G and lasts
// (1 - (1 - p)^G) / p steps.
double long_run_skip_rate(std::span<const double> chances, std::uint64_t growth_interval) {
  const double interval = static_cast<double>(growth_interval);
  const auto overflow = [&](double p) {
    return p >= 1 ? 1.0 : -std::expm1(interval * std::log1p(-p));
  };
  // The first scale that is left downward only; those above it are never reached again.
  std::size_t top = 0;
  while (top + 1 < chances.size() && overflow(chances[top]) < 1) ++top;
  double visits = 1, skipped = 0, steps = 0;
  for (std::size_t i = top;; --i) {
    const double q = overflow(chances[i]);
    skipped += visits * q;
    steps += visits * (chances[i] > 0 ? q / chances[i] : interval);
    if (i == 0 || q <= 0) break;
    const double up = 1 - overflow(chances[i - 1]);
    if (up <= 0) break;
    visits *= q / up;
  }
  return skipped / steps;
}

std::optional<DynamicAdvice> dynamic_advice(const underflow::Analysis& analysis,
                                            const Recommendation& advice) {
  if (!advice.static_log2) return std::nullopt;
  const std::vector<LogMaxima> logs = step_maxima(analysis);
  const std::optional<int> safe = highest_safe(logs);
  if (!safe) return std::nullopt;
  std::vector<double> limits;
  for (int k = *safe - kBelow; k <= *safe + kAbove; ++k) {
    limits.push_back(limit_log2(analysis.target, k));
  }
  DynamicAdvice dynamic;
  // Tables may know of larger gradients than those of steps whose maxima are known.
  dynamic.init_log2 = std::min(*safe, advice.highest_log2.value_or(*safe) + advice.headroom_asked);
  dynamic.skip_low = 1;
  std::vector<std::vector<SkipRisk>> risks;
  for (const LogMaxima& log : logs) {
    risks.push_back(skip_risks(log.steps, limits));
    const std::uint64_t interval = interval_for(drift_of(risks.back().front()));
    dynamic.growth_interval = std::min(dynamic.growth_interval, interval);
  }
  bool fitted = true;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const std::vector<SkipRisk>& log = risks[i];
    const Proportion bad = at_any_scale(logs[i]);
    dynamic.bad_steps += logs[i].left_out.size();
    add_rates(dynamic, log, drift_of(log.front()), bad);
    if (log.front().method == RiskMethod::extreme_value) continue;
    fitted = false;
    bound_by_counting(dynamic, log[kBelow], bad);
  }
  if (fitted) {  // no less than nothing is known beyond the bounds
    dynamic.expected_skip_rate =
        std::clamp(*dynamic.expected_skip_rate, dynamic.skip_low, dynamic.skip_high);
  } else {
    dynamic.expected_skip_rate.reset();
  }
  dynamic.why = why(dynamic);
  return dynamic;
}

}  // namespace halfscope::analyzers::recommend
