// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/skip_bound.hpp"

#include <algorithm>
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

void estimate(SkipBound& bound) {
  const Proportion read = proportion(bound.exceedances, bound.steps);
  // Unread steps that surely overflow count too: the estimate is not below their share.
  const Proportion all =
      proportion(bound.exceedances + bound.unread_exceedances, bound.steps + bound.unread);
  bound.probability = std::max(read.estimate, all.estimate);
  bound.low = std::max(read.low, all.low);
  bound.high = std::max(proportion(bound.exceedances + bound.perhaps, bound.steps).high, all.high);
}

SkipBound skip_bound(std::span<const StepMaximum> steps, int log2_scale) {
  SkipBound bound;
  for (const StepMaximum& step : steps) {
    const bool overflows = log2_scale > step.highest_log2;
    const bool open = step.is_open(log2_scale);
    ++(open ? bound.unread : bound.steps);
    (open ? bound.unread_exceedances : bound.exceedances) += overflows;
    bound.perhaps += !step.unread && !overflows && step.censored;
  }
  estimate(bound);
  return bound;
}

}  // namespace halfscope::analyzers::recommend
