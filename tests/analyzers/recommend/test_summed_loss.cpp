// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/recommend.hpp"

#include <limits>

#include "catch.hpp"

namespace halfscope::analyzers::recommend::test_summed_loss {
namespace {

underflow::LogFindings log_of(const std::vector<double>& losses) {
  underflow::LogFindings log;
  log.name = "run";
  for (const double loss : losses) {
    log.scalars.emplace_back();
    log.scalars.back().loss = loss;
  }
  return log;
}

std::optional<SummedLoss> found_in(const std::vector<double>& losses) {
  const std::vector<underflow::LogFindings> logs = {log_of({}), log_of(losses)};
  return summed_loss(logs);
}

TEST_CASE("a loss is a sum where no mean of cross-entropies is as large", "[summed_loss]") {
  CHECK_FALSE(found_in({11, 10, 9}));  // of 50,000 classes
  CHECK_FALSE(found_in({}));
  CHECK_FALSE(found_in({2, 1e6, 3}));  // one outlier
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto sum = found_in({nan, 20000, 22000, 21000});
  REQUIRE(sum);
  CHECK(sum->loss == 21000);
  CHECK(sum->steps == 3);
  CHECK(sum->times() > 1262);  // 21000 / ln 2^24 = 1262.4
  CHECK(sum->times() < 1263);
  std::vector<double> rises(10, 5.0);
  rises.resize(100, 1e4);  // it diverged
  CHECK_FALSE(found_in(rises));
}

}  // namespace
}  // namespace halfscope::analyzers::recommend::test_summed_loss
