// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/skip_bound.hpp"

#include <boost/math/distributions/binomial.hpp>
#include <span>

namespace halfscope::analyzers::recommend {

Proportion proportion(std::uint64_t successes, std::uint64_t trials) {
  if (trials == 0) return {};
  using Binomial = boost::math::binomial_distribution<double>;
  const auto k = static_cast<double>(successes), n = static_cast<double>(trials);
  const bool one_sided = successes == 0 || successes == trials;
  const double alpha = (1 - SkipBound::kConfidence) / (one_sided ? 1 : 2);
  return {k / n, successes == 0 ? 0 : Binomial::find_lower_bound_on_p(n, k, alpha),
          successes == trials ? 1 : Binomial::find_upper_bound_on_p(n, k, alpha)};
}

SkipBound skip_bound(std::span<const StepMaximum> steps, int log2_scale) {
  SkipBound bound;
  for (const StepMaximum& step : steps) {
    ++bound.steps;
    const bool overflows = log2_scale > step.highest_log2;
    bound.exceedances += overflows;
    bound.perhaps += !overflows && step.censored;
  }
  const Proportion surely = proportion(bound.exceedances, bound.steps);
  bound.probability = surely.estimate;
  bound.low = surely.low;
  bound.high = proportion(bound.exceedances + bound.perhaps, bound.steps).high;
  return bound;
}

}  // namespace halfscope::analyzers::recommend
