// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/proportion.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>

namespace halfscope::analyzers::recommend {
namespace {

constexpr double kOneSide = 0.025;  // of a 95 % interval

}  // namespace

Proportion binomial(double successes, double n) {
  if (n <= 0) return {0, 0, 1};
  const double k = std::clamp(successes, 0.0, n);
  const double low =
      k == 0 ? 0 : boost::math::ibeta_inv(k, n - k + 1, k == n ? 2 * kOneSide : kOneSide);
  if (k == n) return {1, low, 1};
  return {k / n, low, boost::math::ibetac_inv(k + 1, n - k, k == 0 ? 2 * kOneSide : kOneSide)};
}

}  // namespace halfscope::analyzers::recommend
