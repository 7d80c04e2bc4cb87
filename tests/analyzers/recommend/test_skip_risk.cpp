// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/skip_risk.hpp"

#include <cmath>
#include <vector>

#include "analyzers/recommend/serial.hpp"
#include "analyzers/tail_families.hpp"
#include "catch.hpp"

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace tails;

namespace {

std::vector<recommend::StepMaximum> alike(std::size_t n, double value) {
  std::vector<recommend::StepMaximum> steps;
  for (std::size_t i = 0; i < n; ++i) steps.push_back({static_cast<std::int64_t>(i), value});
  return steps;
}

}  // namespace

TEST_CASE("few steps have the binomial bound", "[table]") {
  const recommend::SkipRisk none = recommend::skip_risk(alike(60, 1.0), 2.0);
  CHECK(none.method == recommend::RiskMethod::binomial);
  CHECK(none.exceedances == 0);
  CHECK(none.probability == 0);
  CHECK(none.low == 0);
  CHECK(none.high == Approx(1 - std::pow(0.05, 1.0 / 60)));  // none in n: (1 - p)^n = 5 %
  CHECK(none.high < 3.0 / 60);                               // the rule of three is its limit

  // Clopper and Pearson, 5 of 10: 0.1871 to 0.8129, as in every table.
  std::vector<recommend::StepMaximum> half = alike(10, 1.0);
  for (std::size_t i = 0; i < 5; ++i) half[2 * i].log2_max = 3;
  const recommend::SkipRisk risk = recommend::skip_risk(half, 2.0);
  CHECK(risk.exceedances == 5);
  CHECK(risk.low == Approx(0.1871).margin(5e-5));
  CHECK(risk.high == Approx(0.8129).margin(5e-5));

  const recommend::SkipRisk all =
      recommend::skip_risk(alike(10, 2.0), 2.0);  // at the limit overflows
  CHECK(all.exceedances == 10);
  CHECK(all.probability == 1);
  CHECK(all.high == 1);
  CHECK(recommend::skip_risk({}, 2.0).high == 1);
}

TEST_CASE("a tail is fitted from 100 steps on, and where there is one", "[table]") {
  const Family normal{"normal", kNormal, normal_above};
  CHECK(recommend::skip_risk(run_of(normal, 99, 5), 3).method == recommend::RiskMethod::binomial);
  CHECK(recommend::skip_risk(run_of(normal, 100, 5), 3).method ==
        recommend::RiskMethod::extreme_value);
  CHECK(recommend::skip_risk(alike(500, 1.0), 2.0).method == recommend::RiskMethod::binomial);
}

TEST_CASE("the interval says more than counting", "[oracle]") {
  const auto steps = run_of({"normal", kNormal, normal_above}, 1000, 3);
  const recommend::SkipRisk far = recommend::skip_risk(steps, 8);
  CHECK(far.low == 0);
  CHECK(far.tail_high < 1e-4);
  CHECK(far.high >= 0.0029);  // 3 in 1000, whatever the tail: 1000 steps say no more
  CHECK(far.high < 5e-3);
  const recommend::SkipRisk near = recommend::skip_risk(steps, reached_with(normal_above, 0.1));
  CHECK(near.low > 0.05);
  CHECK(near.high < 0.2);
}

TEST_CASE("the rate is the last step's, not the run's", "[oracle]") {
  const Family rising{"rising", kNormal, normal_above, 0.05};
  const recommend::SkipRisk at_end = recommend::skip_risk(run_of(rising, 200, 9), 0.05 * 199);
  CHECK(at_end.trend == Approx(0.05).margin(0.005));
  CHECK(at_end.trend_error > 0);
  CHECK(at_end.low < 0.5);
  CHECK(at_end.high > 0.5);
  CHECK(at_end.probability > 0.3);                      // half of such steps
  CHECK(static_cast<double>(at_end.exceedances) < 20);  // of all 200, few
  const Family falling{"falling", kNormal, normal_above, -0.05};
  CHECK(recommend::skip_risk(run_of(falling, 200, 9), 0).tail_high <
        0.01);  // half of the first steps
}

TEST_CASE("steps that were not finite count at every limit, censored ones may", "[table]") {
  auto steps = run_of({"normal", kNormal, normal_above}, 200, 4);
  const double before = recommend::skip_risk(steps, 8).tail_high;
  for (const std::size_t i : {20u, 90u, 150u, 170u}) steps[i].log2_max = INFINITY;
  const recommend::SkipRisk risk = recommend::skip_risk(steps, 8);
  CHECK(risk.exceedances == 4);
  CHECK(risk.probability >= 0.02);
  CHECK(risk.low > 0.005);
  CHECK(risk.tail_high > 0.04);
  for (const std::size_t i : {20u, 90u, 150u, 170u}) steps[i] = {steps[i].step, 2.0, true};
  const recommend::SkipRisk perhaps = recommend::skip_risk(steps, 8);
  CHECK(perhaps.exceedances == 0);
  CHECK(perhaps.perhaps == 4);
  CHECK(perhaps.low == 0);
  CHECK(perhaps.tail_high > 0.04);
  CHECK(before < 0.01);
}

TEST_CASE("the same seed, the same bits, order does not matter", "[exact]") {
  const auto steps = run_of({"normal", kNormal, normal_above, 0.01}, 150, 8);
  const recommend::SkipRisk one = recommend::skip_risk(steps, 4, 7),
                            two = recommend::skip_risk(steps, 4, 7);
  CHECK(one.high == two.high);
  CHECK(one.low == two.low);
  const std::vector<recommend::StepMaximum> backward(steps.rbegin(), steps.rend());
  CHECK(recommend::skip_risk(backward, 4, 7).high == one.high);
  const std::vector<double> limits = {2, 4, 6};
  CHECK(recommend::skip_risks(steps, limits, 7)[1].high == one.high);
}

TEST_CASE("a few values, or a perfect line, are counted and not fitted", "[advice]") {
  for (const auto& value :
       {+[](int i) { return i % 2 == 0 ? 2.0 : 6.0; }, +[](int i) { return -0.01 * i; }}) {
    std::vector<recommend::StepMaximum> steps;
    for (int i = 0; i < 150; ++i) steps.push_back({i, value(i)});
    const recommend::SkipRisk risk = recommend::skip_risk(steps, 7.0);
    CHECK(risk.method == recommend::RiskMethod::binomial);
    CHECK(risk.high > 0.019);
    CHECK(risk.high < 0.03);
  }
}

TEST_CASE("no end of an interval rises with the limit", "[advice]") {
  const Family family = GENERATE(values<Family>({
      {"normal", kNormal, normal_above},
      {"uniform", kFlat, uniform_above},
      {"normal, correlated by 0.8", kNormal, normal_above, 0, 0.8},
      {"1 % of steps 8 binades above", mixture<10, 8>, mixture_above<10, 8>},
  }));
  CAPTURE(family.name);
  std::vector<double> limits;
  for (int i = -16; i <= 80; ++i) limits.push_back(i / 4.0);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    auto steps = run_of(family, 130, seed);
    if (seed % 2 == 0) steps[40].censored = true;
    const auto risks = recommend::skip_risks(steps, limits);
    for (std::size_t i = 1; i < risks.size(); ++i) {
      CAPTURE(seed, limits[i]);
      CHECK(risks[i].high <= risks[i - 1].high);
      CHECK(risks[i].low <= risks[i - 1].low);
      CHECK(risks[i].tail_high <= risks[i - 1].tail_high);
      CHECK(risks[i].tail_low <= risks[i - 1].tail_low);
      CHECK(risks[i].low <= risks[i].tail_low);
      CHECK(risks[i].tail_high <= risks[i].high);
    }
  }
}

TEST_CASE("a series that repeats itself says less", "[advice]") {
  const std::vector<double> alternating = {1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1};
  CHECK(recommend::inflation_from(alternating, 0) == 1);  // of one sign is followed by the other
  CHECK(recommend::inflation_from(alternating, 2) == 1);
  // Twos of a kind: P = 1/2; at lag 1 both are in 3 of 11: covariance 3/11 - 1/4, then
  // none at lag 2.
  const std::vector<double> twos = {1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1};
  const double p = 0.5, covariance = 3.0 / 11 - p * p;
  CHECK(recommend::inflation_from(twos, 0) ==
        Approx(1 + 2 * (1 - 1.0 / 12) * covariance / (p * p)));

  std::vector<double> residuals;
  for (const auto& s : run_of({"", kNormal, normal_above, 0, 0.8}, 4000, 3)) {
    residuals.push_back(s.log2_max);
  }
  const recommend::Autoregression found = recommend::autoregression(residuals);
  CHECK(found.correlation == Approx(0.8).margin(0.03));
  CHECK(found.longer == Approx(3).margin(0.3));  // sqrt(1.8 / 0.2)
  CHECK(found.deviation == Approx(1).margin(0.1));
  CHECK(recommend::autoregression(std::vector<double>(50, 0.0)).longer == 1);
}
