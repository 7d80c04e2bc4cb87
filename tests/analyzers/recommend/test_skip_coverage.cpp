// SPDX-License-Identifier: Apache-2.0
// What the intervals of skip_risk() promise, on synthetic runs of known tails.
#include <string>
#include <vector>

#include "analyzers/recommend/skip_risk.hpp"
#include "analyzers/tail_families.hpp"
#include "catch.hpp"

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace tails;

namespace {

constexpr int kRuns = 200;

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"normal", kNormal, normal_above},
      {"exponential", kExponential, exponential_above},
      {"Student t, 3 degrees of freedom", student, student_above},
      {"uniform", kFlat, uniform_above},
      {"Gumbel", gumbel, gumbel_above},
      {"normal, rising", kNormal, normal_above, 0.01},
      {"exponential, falling", kExponential, exponential_above, -0.01},
      {"Student t, rising", student, student_above, 0.02},
      {"normal, correlated by 0.5", kNormal, normal_above, 0, 0.5},
      {"normal, correlated by 0.8", kNormal, normal_above, 0, 0.8},
      {"normal, correlated by 0.9", kNormal, normal_above, 0, 0.9},
      {"0.5 % of steps 8 binades above", mixture<5, 8>, mixture_above<5, 8>},
      {"1 % of steps 8 binades above", mixture<10, 8>, mixture_above<10, 8>},
      {"2 % of steps 4 binades above", mixture<20, 4>, mixture_above<20, 4>},
      {"5 % of steps 8 binades above", mixture<50, 8>, mixture_above<50, 8>},
  };
  return all;
}

/// In how many of the runs each rate is inside the interval.
std::vector<int> inside(const Family& family, std::int64_t steps, const std::vector<double>& rates,
                        int runs) {
  const std::vector<double> limits = limits_of(family, steps, rates);
  std::vector<int> found(rates.size());
  for (int run = 0; run < runs; ++run) {
    const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(run);
    const auto risks = recommend::skip_risks(run_of(family, steps, seed), limits);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      REQUIRE(risks[i].method == recommend::RiskMethod::extreme_value);
      found[i] += risks[i].low <= rates[i] && rates[i] <= risks[i].high;
    }
  }
  return found;
}

}  // namespace

TEST_CASE("the true rate is inside the interval in 90 % of runs of known tails", "[oracle]") {
  const std::vector<double> rates = {0.1, 0.003, 1e-5};
  for (const Family& family : families()) {
    const std::vector<int> found = inside(family, 120, rates, kRuns);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      CAPTURE(family.name, rates[i], found[i]);
      CHECK(found[i] >= kRuns * 9 / 10);
    }
  }
}

TEST_CASE("the same for rates from 0.3 to one in a million, 100 to 1000 steps", "[.exhaustive]") {
  const std::vector<double> rates = {0.3, 0.1, 0.03, 0.01, 0.003, 1e-3, 1e-4, 1e-5, 1e-6};
  for (const Family& family : families()) {
    for (const std::int64_t steps : {100, 150, 300, 1000}) {
      const std::vector<int> found = inside(family, steps, rates, kRuns);
      std::string shares;
      for (const int n : found) shares += " " + std::to_string(100 * n / kRuns);
      WARN(family.name << ", " << steps << " steps:" << shares << " %");
      for (std::size_t i = 0; i < rates.size(); ++i) {
        CAPTURE(family.name, steps, rates[i], found[i]);
        CHECK(found[i] >= kRuns * 9 / 10);
      }
    }
  }
}
