// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/pareto.hpp"

#include <cmath>

#include "catch.hpp"

using namespace halfscope::analyzers;

namespace {

/// Values that lie as the distribution says, ascending.
std::vector<double> quantiles(const recommend::Pareto& p, int n) {
  std::vector<double> x;
  for (int i = n; i > 0; --i) x.push_back(p.quantile_above((i - 0.5) / n));
  return x;
}

}  // namespace

TEST_CASE("survival and quantile are each other's inverse, with known values", "[table]") {
  CHECK(recommend::Pareto{0, 2}.survival(2) == Approx(std::exp(-1)));
  CHECK(recommend::Pareto{1, 1}.survival(3) == Approx(0.25));      // 1 / (1 + x)
  CHECK(recommend::Pareto{-1, 1}.survival(0.25) == Approx(0.75));  // uniform
  CHECK(recommend::Pareto{-1, 1}.survival(2) == 0);                // beyond its end
  CHECK(recommend::Pareto{0.3, 1}.survival(-1) == 1);
  for (const double shape : {-0.5, 0.0, 0.3}) {
    const recommend::Pareto p{shape, 1.5};
    CHECK(p.survival(p.quantile_above(0.01)) == Approx(0.01));
  }
}

TEST_CASE("the fit finds shape and scale", "[oracle]") {
  for (const double shape : {-0.4, 0.0, 0.25}) {
    const recommend::Pareto fit = recommend::fit_pareto(quantiles({shape, 0.7}, 20000));
    CAPTURE(shape);
    CHECK(fit.shape == Approx(shape).margin(0.01));
    CHECK(fit.scale == Approx(0.7).epsilon(0.02));
  }
}

TEST_CASE("no value lies beyond a fitted end", "[table]") {
  const std::vector<double> x = {0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 1.0};
  const recommend::Pareto fit = recommend::fit_pareto(x);
  REQUIRE(fit.shape < 0);
  CHECK(-fit.scale / fit.shape >= 1.0);
  CHECK(fit.survival(0.999) > 0);
}

TEST_CASE("the region narrows with the number of excesses", "[oracle]") {
  const recommend::Pareto p{0.1, 1};
  const std::vector<double> x = quantiles(p, 200);
  const double truth = p.survival(6);
  const recommend::ParetoRegion many(x, 200, 1.92), few(x, 20, 1.92);
  const auto narrow = many.survival(6), wide = few.survival(6);
  CHECK(many.likeliest().shape == Approx(0.1).margin(0.06));
  CHECK(wide.low < narrow.low);
  CHECK(narrow.low < truth);
  CHECK(truth < narrow.high);
  CHECK(narrow.high < wide.high);
}
