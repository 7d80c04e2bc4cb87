// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/step_list.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "catch.hpp"

namespace test_step_list {

using namespace halfscope;
using namespace halfscope::analyzers::underflow;

/// Numbers of any size, small ones often; nothing where a step may have none.
class Any {
 public:
  explicit Any(unsigned seed) : random_(seed) {}
  bool coin() { return random_() % 2 == 0; }
  std::uint64_t natural() { return random_() >> (random_() % 64); }
  std::int64_t integer() { return static_cast<std::int64_t>(natural()) * (coin() ? 1 : -1); }
  double real() { return std::ldexp(static_cast<double>(integer()), coin() ? 0 : -70); }
  Interval interval() {
    const std::uint64_t low = natural() / 2;
    return {low, coin() ? low : low + natural() / 2};
  }
  Classes classes() { return {interval(), interval(), interval(), interval()}; }
  Counts counts() {
    return {natural(), interval(), interval(), interval(), interval(), classes(), coin()};
  }
  BinadeCounts binades() {
    BinadeCounts all;
    for (int e = -1080; e < 1024; e += 1 + static_cast<int>(random_() % 999)) {
      all.push_back({e, interval()});
    }
    return all;
  }

 private:
  std::mt19937_64 random_;
};

StepFindings any_step(Any& any) {
  StepFindings step;
  step.step = any.integer();
  step.counts = any.counts();
  step.overflow_at_1 = any.interval();
  step.fits_as_is = any.coin();
  if (any.coin()) step.scale = any.real();
  if (any.coin()) step.loss_scale = any.real();
  if (any.coin()) step.binades = any.binades();
  if (any.coin()) step.largest = Magnitude{-1074, any.natural() % kFractionUnit};
  if (any.coin()) step.max_abs = any.real();
  if (any.coin() && step.largest) step.max_abs = to_double(*step.largest) / step.scale;
  if (any.coin()) step.max_abs_at_least = any.real();
  if (any.coin()) step.moments = Moments{any.real(), any.real()};
  if (any.coin()) step.in_bfloat16 = StepClasses{any.classes(), any.interval()};
  return step;
}

bool same(const Counts& a, const Counts& b) {
  return a.total == b.total && a.zero == b.zero && a.nan == b.nan && a.inf == b.inf &&
         a.finite_nonzero == b.finite_nonzero && a.classes == b.classes &&
         a.nonfinite_known == b.nonfinite_known;
}

bool same(const BinadeCounts& a, const BinadeCounts& b) {
  const auto equal = [](const BinadeCount& x, const BinadeCount& y) {
    return x.exponent == y.exponent && x.count == y.count;
  };
  return std::ranges::equal(a.list(), b.list(), equal);
}

bool same(const StepFindings& a, const StepFindings& b) {
  const bool moments = a.moments.has_value() == b.moments.has_value() &&
                       (!a.moments || (a.moments->mean == b.moments->mean &&
                                       a.moments->sum_squares == b.moments->sum_squares));
  return a.step == b.step && a.scale == b.scale && a.loss_scale == b.loss_scale &&
         same(a.counts, b.counts) && same(a.binades, b.binades) && a.max_abs == b.max_abs &&
         a.max_abs_at_least == b.max_abs_at_least && a.largest == b.largest &&
         a.fits_as_is == b.fits_as_is && a.overflow_at_1 == b.overflow_at_1 && moments &&
         a.in_bfloat16 == b.in_bfloat16;
}

TEST_CASE("binades are as they were put in", "[table]") {
  const BinadeCounts binades = {{-1074, 3}, {-2, {1, 900}}, {0, 70000}, {1023, {0, 5}}};
  REQUIRE(binades.list().size() == 4);
  CHECK(binades.front().exponent == -1074);
  CHECK(binades.front().count == Interval(3));
  CHECK(binades.list()[1].count == Interval(1, 900));
  CHECK(binades.list()[2].exponent == 0);
  CHECK(binades.list()[3].count == Interval(0, 5));
  CHECK(BinadeCounts().empty());
  CHECK(BinadeCounts().begin() == BinadeCounts().end());
}

TEST_CASE("steps are as they were put in, in the order of their numbers", "[table]") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Any any(seed);
    std::vector<StepFindings> wanted;
    StepList list;
    REQUIRE(list.empty());
    for (unsigned i = 0; i < seed; ++i) {
      StepFindings step = any_step(any);
      if (i % 7 == 3) step.step = wanted[i / 2].step;  // a step that comes again
      list.push_back(step);
      wanted.push_back(step);
    }
    list.finish();
    std::ranges::stable_sort(wanted, {}, &StepFindings::step);
    REQUIRE(list.size() == wanted.size());
    const auto equal = [](const auto& a, const auto& b) { return same(a, b); };
    REQUIRE(std::ranges::equal(list, wanted, equal));
    if (seed > 0) CHECK(same(list.back(), wanted.back()));
    list.change([](StepFindings& step) { step.scale = 3; });
    for (StepFindings& step : wanted) step.scale = 3;
    REQUIRE(std::ranges::equal(list, wanted, equal));
  }
}

TEST_CASE("a step is found by its number", "[table]") {
  StepList list;
  CHECK_FALSE(list.find(0));
  for (const std::int64_t number : {-2, 5, 9}) {
    StepFindings step;
    step.step = number;
    step.counts.total = 7;
    list.push_back(step);
  }
  for (const std::int64_t number : {-2, 5, 9}) {
    REQUIRE(list.find(number));
    CHECK(list.contains(number));
    CHECK(list.find(number)->step == number);
    CHECK(list.find(number)->counts.total == 7);
  }
  for (const std::int64_t absent : {-3, 0, 6, 10}) {
    CHECK_FALSE(list.find(absent));
    CHECK_FALSE(list.contains(absent));
  }
}

TEST_CASE("a usual step of eight binades takes under eighty bytes", "[table]") {
  StepFindings step;
  step.counts.total = step.counts.finite_nonzero.low = step.counts.finite_nonzero.high = 16;
  step.largest = Magnitude{-3, kFractionUnit / 3};
  step.max_abs = to_double(*step.largest);
  for (int e = -10; e < -2; ++e) step.binades.push_back({e, 2});
  StepList list;
  list.push_back(step);
  CHECK(list.bytes() < 80);
}

}  // namespace test_step_list
