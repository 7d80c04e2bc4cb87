// SPDX-License-Identifier: Apache-2.0
// The hand-picked rows as a whole: how many there are, and that none is there twice.
#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <string>

#include "catch.hpp"
#include "number/rows.hpp"

TEST_CASE("there are 500 hand-picked rows or more, each with a reason of its own",
          "[number][rows][table]") {
  std::size_t count = 0;
  for (const rows::Table* table : rows::tables()) {
    std::set<std::string> reasons;
    CAPTURE(table->name());
    for (const rows::Row& row : table->rows()) {
      CAPTURE(row.reason);
      CHECK(std::string(row.reason).size() >= 3);
      CHECK(reasons.insert(row.reason).second);
      ++count;
    }
  }
  fmt::print("hand-picked rows: {} in {} tables\n", count, rows::tables().size());
  REQUIRE(count >= 500);
}
