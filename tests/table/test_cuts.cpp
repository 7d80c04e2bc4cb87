// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/cuts.hpp"

#include <stdexcept>
#include <utility>

#include "catch.hpp"
#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/boundary.hpp"

namespace test_cuts {

using namespace halfscope;

using List = std::vector<std::uint64_t>;

TEST_CASE("cuts ascend between the ends of a binade", "[table]") {
  const std::uint64_t end = std::uint64_t{1} << 52;
  CHECK_NOTHROW(Cuts(List{}));
  CHECK_NOTHROW(Cuts(List{1, end - 1}));
  CHECK_THROWS_AS(Cuts(List{0, 1}), std::invalid_argument);
  CHECK_THROWS_AS(Cuts(List{1, end}), std::invalid_argument);
  CHECK_THROWS_AS(Cuts(List{5, 5}), std::invalid_argument);
  CHECK_THROWS_AS(Cuts(List{7, 5}), std::invalid_argument);
}

TEST_CASE("cuts are equal by what they hold, and copies share it", "[table]") {
  CHECK(Cuts() == Cuts(standard_cuts()));
  CHECK(&Cuts().list() == &Cuts(standard_cuts()).list());
  const Cuts a(List{3, 9}), b(List{3, 9});
  CHECK(a == b);
  CHECK_FALSE(a == Cuts());
  Cuts moved_from = a;
  const Cuts moved = std::move(moved_from);
  CHECK(&moved.list() == &a.list());
  CHECK(moved_from == a);  // NOLINT(bugprone-use-after-move): promised
}

TEST_CASE("a fraction lies in the segment that begins at or below it", "[table]") {
  const Cuts cuts(List{3, 9});
  CHECK(cuts.segment_of(0) == 0);
  CHECK(cuts.segment_of(2) == 0);
  CHECK(cuts.segment_of(3) == 1);
  CHECK(cuts.segment_of(8) == 1);
  CHECK(cuts.segment_of(9) == 2);
  CHECK(Cuts(List{}).segment_of(77) == 0);
  CHECK(cuts.first_of(0) == 0);
  CHECK(cuts.last_of(0) == 2);
  CHECK(cuts.first_of(2) == 9);
  CHECK(cuts.last_of(2) == (std::uint64_t{1} << 52) - 1);
}

TEST_CASE("tables whose cuts are built apart merge without loss", "[table]") {
  BinadeTable a(List{3, 9}), b(List{3, 9});
  a.add({0, 4}, false);
  b.add({0, 9}, true);
  a.merge(b);
  CHECK(a.cuts() == List{3, 9});
  CHECK(a.at_or_above({0, 9}) == Interval(1));
}

}  // namespace test_cuts
