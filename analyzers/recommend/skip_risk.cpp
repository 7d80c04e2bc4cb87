// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/skip_risk.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/recommend/tail.hpp"

namespace halfscope::analyzers::recommend {
namespace {

using Steps = std::vector<StepMaximum>;

/// The steps in order, without those whose values are all zero: they have no magnitude.
Steps in_order(std::span<const StepMaximum> steps) {
  Steps sorted;
  for (const StepMaximum& s : steps) {
    if (s.log2_max > -INFINITY) sorted.push_back(s);  // NaN is left out, too
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.step < b.step; });
  return sorted;
}

/// What counting alone tells. Steps that are perhaps above the limit raise the upper end.
SkipRisk by_counting(const Steps& steps, double limit) {
  SkipRisk risk;
  risk.steps = steps.size();
  for (const StepMaximum& s : steps) {
    if (s.log2_max >= limit)
      ++risk.exceedances;
    else if (s.censored)
      ++risk.perhaps;
  }
  const double n = static_cast<double>(risk.steps);
  const Proportion surely = binomial(static_cast<double>(risk.exceedances), n);
  const Proportion most = binomial(static_cast<double>(risk.exceedances + risk.perhaps), n);
  risk.probability = surely.estimate;
  risk.low = surely.low;
  risk.high = most.high;
  return risk;
}

/// The tail's answer in place of the count's. infinite: the share of steps that are beyond every
/// limit, which no tail describes.
void put_tail(SkipRisk& risk, const Tail& tail, const Reach& reaching, const Proportion& infinite,
              bool any_censored) {
  const double most = risk.high;
  risk.method = RiskMethod::extreme_value;
  risk.trend = tail.trend().slope;
  risk.trend_error = tail.trend_error();
  const auto either = [](double a, double b) { return a + b - a * b; };
  risk.probability = either(infinite.estimate, reaching.fitted.estimate);
  risk.low = either(infinite.low, reaching.whatever.low);
  risk.high = either(infinite.high, reaching.whatever.high);
  risk.tail_low = either(infinite.low, reaching.fitted.low);
  risk.tail_high = either(infinite.high, reaching.fitted.high);
  if (!any_censored) return;  // at every limit or at none: the ends stay in order
  risk.high = std::max(risk.high, most);
  risk.tail_high = std::max(risk.tail_high, most);
}

}  // namespace

std::string_view name_of(RiskMethod method) {
  switch (method) {
    case RiskMethod::binomial: return "binomial";
    case RiskMethod::extreme_value: return "extreme_value";
  }
  return "binomial";
}

std::vector<SkipRisk> skip_risks(std::span<const StepMaximum> steps,
                                 std::span<const double> limits_log2, std::uint64_t seed) {
  const Steps sorted = in_order(steps);
  std::vector<SkipRisk> risks;
  for (const double limit : limits_log2) risks.push_back(by_counting(sorted, limit));

  const std::size_t first = sorted.size() - std::min(sorted.size(), kMostForTail);
  std::vector<double> times, values;
  for (std::size_t i = first; i < sorted.size(); ++i) {
    if (!std::isfinite(sorted[i].log2_max)) continue;
    times.push_back(static_cast<double>(sorted[i].step));
    values.push_back(sorted[i].log2_max);
  }
  if (values.size() < kLeastForTail) return risks;
  const Tail tail(times, values, seed);
  if (!tail.fitted()) return risks;
  const double n = static_cast<double>(sorted.size() - first);
  const double not_finite = n - static_cast<double>(values.size());
  const Proportion infinite = not_finite == 0 ? Proportion() : binomial(not_finite, n);
  const std::vector<Reach> reaching = tail.reaching(limits_log2);
  const bool any_censored =
      std::any_of(sorted.begin(), sorted.end(), [](const StepMaximum& s) { return s.censored; });
  for (std::size_t i = 0; i < risks.size(); ++i) {
    put_tail(risks[i], tail, reaching[i], infinite, any_censored);
  }
  return risks;
}

SkipRisk skip_risk(std::span<const StepMaximum> steps, double limit_log2, std::uint64_t seed) {
  return skip_risks(steps, {&limit_log2, 1}, seed).front();
}

}  // namespace halfscope::analyzers::recommend
