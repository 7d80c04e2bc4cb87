// SPDX-License-Identifier: Apache-2.0
#include "analyzers/skip_risk.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "catch.hpp"
#include "halfscope/number/random.hpp"

using namespace halfscope;
using namespace halfscope::analyzers;

namespace {

/// Uniform numbers in (0, 1), the same everywhere.
class Uniform {
 public:
  explicit Uniform(std::uint64_t seed) : seed_(seed) {}
  double operator()() { return (random_word(seed_, next_++) + 0.5) * 0x1p-32; }
  double normal() {
    const double radius = std::sqrt(-2 * std::log((*this)()));
    return radius * std::cos(2 * std::numbers::pi * (*this)());
  }

 private:
  std::uint64_t seed_, next_ = 0;
};

double normal_above(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }
double exponential_above(double x) { return x <= 0 ? 1 : std::exp(-x); }
double uniform_above(double x) { return std::clamp(1 - x, 0.0, 1.0); }
/// Student's t with three degrees of freedom, in closed form.
double student_above(double x) {
  const double r = std::numbers::sqrt3;
  return 0.5 - (std::atan(x / r) + r * x / (3 + x * x)) / std::numbers::pi;
}
double student(Uniform& u) {
  const double z = u.normal();
  double squares = 0;
  for (int i = 0; i < 3; ++i) squares += std::pow(u.normal(), 2);
  return z / std::sqrt(squares / 3);
}

/// A way that log2 of a step's largest magnitude may vary.
struct Family {
  const char* name;
  std::function<double(Uniform&)> draw;
  double (*above)(double);
  double slope = 0;        ///< a step
  double correlation = 0;  ///< of neighbours: a first-order autoregression, normal
};

std::vector<StepMaximum> run_of(const Family& family, std::int64_t steps, std::uint64_t seed) {
  Uniform uniform(seed);
  std::vector<StepMaximum> run;
  double last = uniform.normal();
  for (std::int64_t step = 0; step < steps; ++step) {
    double x = family.draw(uniform);
    const double r = family.correlation;
    if (r != 0) last = x = r * last + std::sqrt(1 - r * r) * x;
    run.push_back({step, x + family.slope * static_cast<double>(step)});
  }
  return run;
}

/// x with above(x) = p.
double reached_with(double (*above)(double), double p) {
  double low = -100, high = 1e6;
  for (int i = 0; i < 200; ++i) {
    const double middle = (low + high) / 2;
    (above(middle) > p ? low : high) = middle;
  }
  return high;
}

const auto kNormal = [](Uniform& u) { return u.normal(); };
const auto kExponential = [](Uniform& u) { return -std::log(u()); };
const auto kFlat = [](Uniform& u) { return u(); };

std::vector<StepMaximum> alike(std::size_t n, double value) {
  std::vector<StepMaximum> steps;
  for (std::size_t i = 0; i < n; ++i) steps.push_back({static_cast<std::int64_t>(i), value});
  return steps;
}

}  // namespace

TEST_CASE("few steps have the binomial bound", "[table]") {
  const SkipRisk none = skip_risk(alike(60, 1.0), 2.0);
  CHECK(none.method == RiskMethod::binomial);
  CHECK(none.exceedances == 0);
  CHECK(none.probability == 0);
  CHECK(none.low == 0);
  CHECK(none.high == Approx(1 - std::pow(0.05, 1.0 / 60)));  // none in n: (1 - p)^n = 5 %
  CHECK(none.high < 3.0 / 60);                               // the rule of three is its limit

  // Clopper and Pearson, 5 of 10: 0.1871 to 0.8129, as in every table.
  std::vector<StepMaximum> half = alike(10, 1.0);
  for (std::size_t i = 0; i < 5; ++i) half[2 * i].log2_max = 3;
  const SkipRisk risk = skip_risk(half, 2.0);
  CHECK(risk.exceedances == 5);
  CHECK(risk.low == Approx(0.1871).margin(5e-5));
  CHECK(risk.high == Approx(0.8129).margin(5e-5));

  const SkipRisk all = skip_risk(alike(10, 2.0), 2.0);  // at the limit overflows
  CHECK(all.exceedances == 10);
  CHECK(all.probability == 1);
  CHECK(all.high == 1);
  CHECK(skip_risk({}, 2.0).high == 1);
}

TEST_CASE("a tail is fitted from 100 steps on, and where there is one", "[table]") {
  const Family normal{"normal", kNormal, normal_above};
  CHECK(skip_risk(run_of(normal, 99, 5), 3).method == RiskMethod::binomial);
  CHECK(skip_risk(run_of(normal, 100, 5), 3).method == RiskMethod::extreme_value);
  CHECK(skip_risk(alike(500, 1.0), 2.0).method == RiskMethod::binomial);
}

// What the interval promises: 200 runs each, limits from one step in ten to one in 100,000.
TEST_CASE("the true rate is inside the interval in 90 % of runs of known tails", "[oracle]") {
  const Family family = GENERATE(values<Family>({
      {"normal", kNormal, normal_above},
      {"exponential", kExponential, exponential_above},
      {"Student t, 3 degrees of freedom", student, student_above},
      {"uniform", kFlat, uniform_above},
      {"normal, rising", kNormal, normal_above, 0.01},
      {"exponential, falling", kExponential, exponential_above, -0.01},
      {"Student t, rising", student, student_above, 0.02},
      {"normal, correlated by 0.5", kNormal, normal_above, 0, 0.5},
      {"normal, correlated by 0.8", kNormal, normal_above, 0, 0.8},
  }));
  CAPTURE(family.name);
  constexpr int kRuns = 200;
  constexpr std::int64_t kSteps = 120;
  const std::vector<double> rates = {0.1, 0.01, 1e-3, 1e-5};
  std::vector<double> limits;
  for (const double rate : rates) {
    limits.push_back(reached_with(family.above, rate) +
                     family.slope * static_cast<double>(kSteps - 1));
  }
  std::vector<int> inside(rates.size());
  for (int run = 0; run < kRuns; ++run) {
    const std::uint64_t seed = 1000 + static_cast<std::uint64_t>(run);
    const auto risks = skip_risks(run_of(family, kSteps, seed), limits);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      REQUIRE(risks[i].method == RiskMethod::extreme_value);
      inside[i] += risks[i].low <= rates[i] && rates[i] <= risks[i].high;
    }
  }
  for (std::size_t i = 0; i < rates.size(); ++i) {
    CAPTURE(rates[i], inside[i]);
    CHECK(inside[i] >= kRuns * 9 / 10);
  }
}

TEST_CASE("the interval says more than counting", "[oracle]") {
  const auto steps = run_of({"normal", kNormal, normal_above}, 1000, 3);
  const SkipRisk far = skip_risk(steps, 8);
  CHECK(far.low == 0);
  CHECK(far.high < 1e-4);  // counting alone: 3e-3
  const SkipRisk near = skip_risk(steps, reached_with(normal_above, 0.1));
  CHECK(near.low > 0.05);
  CHECK(near.high < 0.2);
}

TEST_CASE("the rate is the last step's, not the run's", "[oracle]") {
  const Family rising{"rising", kNormal, normal_above, 0.05};
  const SkipRisk at_end = skip_risk(run_of(rising, 200, 9), 0.05 * 199);
  CHECK(at_end.trend == Approx(0.05).margin(0.005));
  CHECK(at_end.trend_error > 0);
  CHECK(at_end.low < 0.5);
  CHECK(at_end.high > 0.5);
  CHECK(at_end.probability > 0.3);                      // half of such steps
  CHECK(static_cast<double>(at_end.exceedances) < 20);  // of all 200, few
  const Family falling{"falling", kNormal, normal_above, -0.05};
  CHECK(skip_risk(run_of(falling, 200, 9), 0).high < 0.01);  // half of the first steps
}

TEST_CASE("steps that were not finite count at every limit, censored ones may", "[table]") {
  auto steps = run_of({"normal", kNormal, normal_above}, 200, 4);
  const double before = skip_risk(steps, 8).high;
  for (const std::size_t i : {20u, 90u, 150u, 170u}) steps[i].log2_max = INFINITY;
  const SkipRisk risk = skip_risk(steps, 8);
  CHECK(risk.exceedances == 4);
  CHECK(risk.probability >= 0.02);
  CHECK(risk.low > 0.005);
  CHECK(risk.high > 0.05);
  for (const std::size_t i : {20u, 90u, 150u, 170u}) steps[i] = {steps[i].step, 2.0, true};
  const SkipRisk perhaps = skip_risk(steps, 8);
  CHECK(perhaps.exceedances == 0);
  CHECK(perhaps.perhaps == 4);
  CHECK(perhaps.low == 0);
  CHECK(perhaps.high > 0.05);
  CHECK(before < 0.01);
}

TEST_CASE("the same seed, the same bits, order does not matter", "[exact]") {
  const auto steps = run_of({"normal", kNormal, normal_above, 0.01}, 150, 8);
  const SkipRisk one = skip_risk(steps, 4, 7), two = skip_risk(steps, 4, 7);
  CHECK(one.high == two.high);
  CHECK(one.low == two.low);
  const std::vector<StepMaximum> backward(steps.rbegin(), steps.rend());
  CHECK(skip_risk(backward, 4, 7).high == one.high);
  const std::vector<double> limits = {2, 4, 6};
  CHECK(skip_risks(steps, limits, 7)[1].high == one.high);
}

TEST_CASE("a few values, or a perfect line, are counted and not fitted", "[advice]") {
  for (const auto& value :
       {+[](int i) { return i % 2 == 0 ? 2.0 : 6.0; }, +[](int i) { return -0.01 * i; }}) {
    std::vector<StepMaximum> steps;
    for (int i = 0; i < 150; ++i) steps.push_back({i, value(i)});
    const SkipRisk risk = skip_risk(steps, 7.0);
    CHECK(risk.method == RiskMethod::binomial);
    CHECK(risk.high > 0.019);
    CHECK(risk.high < 0.03);
  }
}
