// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/charts.hpp"

#include <nlohmann/json.hpp>

#include "catch.hpp"

namespace test_rows {

using namespace halfscope;
using namespace halfscope::reports;

/// 10 to 12 finite nonzero values, of which 8 lie in [1, 2) and 2 to 4 in [2^-30, 2^-29).
answer::Series series() {
  answer::Series sum;
  sum.counts.finite_nonzero = {10, 12};
  sum.binades = {{-30, {2, 4}}, {0, 8}};
  sum.columns = {{3, 5, {{0, 8}}}};
  return sum;
}

TEST_CASE("a bar has its count and share in words", "[reports][rows]") {
  const auto rows = charts::bar_rows(series());
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["e"] == -30);
  CHECK(rows[0]["low"] == 2);
  CHECK(rows[0]["high"] == 4);
  CHECK(rows[0]["values"] == "2 to 4 (16.7 % to 40.0 %)");  // of 12 at most, of 10 at least
  CHECK(rows[1]["values"] == "8 (66.7 % to 80.0 %)");
}

TEST_CASE("a cell has the steps of its column", "[reports][rows]") {
  const auto rows = charts::cell_rows(series());
  REQUIRE(rows.size() == 1);
  CHECK(rows[0]["step"] == 3);
  CHECK(rows[0]["last"] == 5);
  CHECK(rows[0]["low"] == 8);
}

TEST_CASE("without values no share is made up", "[reports][rows]") {
  answer::Series none;
  none.binades = {{0, {0, 0}}};
  CHECK(charts::bar_rows(none)[0]["values"] == "0 (0 %)");
}

}  // namespace test_rows
