// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/parts.hpp"

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <vector>

#include "catch.hpp"

namespace test_skip_bound {

using halfscope::Interval;
using namespace halfscope::analyzers::recommend;

using Wide = boost::multiprecision::cpp_bin_float_100;

/// The chance of at most k successes in n trials, summed term by term.
Wide at_most(unsigned k, unsigned n, Wide p) {
  Wide term = pow(1 - p, n), sum = term;
  for (unsigned i = 1; i <= k; ++i) {
    term *= p / (1 - p) * (n - i + 1) / i;
    sum += term;
  }
  return sum;
}

bool near(const Wide& found, double wanted) { return abs(found - wanted) < 1e-9; }

std::vector<StepMaximum> steps_of(const std::vector<int>& highest_log2) {
  std::vector<StepMaximum> steps;
  for (const int k : highest_log2) steps.push_back({std::int64_t(steps.size()), k, false});
  return steps;
}

TEST_CASE("the ends of a proportion leave 2.5 % on either side, or 5 % on one", "[oracle]") {
  for (const unsigned n : {1U, 2U, 7U, 20U, 86U, 400U}) {
    for (unsigned k = 0; k <= n; k += 1 + n / 9) {
      const Proportion found = proportion(k, n);
      CAPTURE(k, n);
      CHECK(found.estimate == static_cast<double>(k) / n);
      const double side = k == 0 || k == n ? 0.05 : 0.025;
      if (k == 0)
        CHECK(found.low == 0);
      else
        CHECK(near(1 - at_most(k - 1, n, found.low), side));
      if (k == n)
        CHECK(found.high == 1);
      else
        CHECK(near(at_most(k, n, found.high), side));
    }
  }
}

TEST_CASE("of no steps nothing is known", "[table]") {
  CHECK(proportion(0, 0).low == 0);
  CHECK(proportion(0, 0).high == 1);
  CHECK(skip_bound({}, 0).steps == 0);
  CHECK(skip_bound({}, 0).high == 1);
}

TEST_CASE("0 of 86 steps overflow: at most 3.4 %", "[table]") {
  const SkipBound found = skip_bound(steps_of(std::vector<int>(86, 4)), 4);
  CHECK(found.steps == 86);
  CHECK(found.exceedances == 0);
  CHECK(std::abs(found.high - 0.0342) < 1e-4);
}

TEST_CASE("a step overflows beyond the largest scale that holds it", "[table]") {
  const SkipBound found = skip_bound(steps_of({3, 4, -70}), 4);
  CHECK(found.steps == 3);
  CHECK(found.exceedances == 2);
}

TEST_CASE("steps that perhaps overflow raise the upper end alone", "[table]") {
  std::vector<StepMaximum> steps = steps_of(std::vector<int>(20, 4));
  for (int i = 0; i < 5; ++i) steps[static_cast<std::size_t>(i)].censored = true;
  const SkipBound found = skip_bound(steps, 4);
  CHECK(found.exceedances == 0);
  CHECK(found.perhaps == 5);
  CHECK(found.low == 0);
  CHECK(found.high == proportion(5, 20).high);
}

TEST_CASE("steps that were not all read are not among those counted", "[table]") {
  std::vector<StepMaximum> steps = steps_of(std::vector<int>(61, 16));
  for (std::size_t i = 4; i < steps.size(); ++i) steps[i].unread = true;
  const SkipBound found = skip_bound(steps, 16);
  CHECK(found.steps == 4);
  CHECK(found.unread == 57);
  CHECK(found.high == proportion(0, 4).high);
  CHECK(found.overflowing() == Interval(0, 57));
  SECTION("those that the run found clean at a larger scale are") {
    steps[9].clean_log2 = 16;
    steps[10].clean_log2 = 15;
    CHECK(skip_bound(steps, 16).steps == 5);
    CHECK(skip_bound(steps, 15).steps == 6);
  }
  SECTION("an estimate is no less than the share that surely overflows") {
    for (std::size_t i = 10; i < 13; ++i) steps[i].highest_log2 = 2;
    const SkipBound some = skip_bound(steps, 16);
    CHECK(some.steps == 4);
    CHECK(some.unread_exceedances == 3);
    CHECK(some.overflowing() == Interval(3, 57));
    CHECK(some.probability == proportion(3, 61).estimate);
    CHECK(some.low == proportion(3, 61).low);
    CHECK(some.high == proportion(0, 4).high);
  }
}

}  // namespace test_skip_bound
