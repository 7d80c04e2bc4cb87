// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/rare.hpp"

#include <string>
#include <type_traits>
#include <utility>

#include "catch.hpp"

namespace test_rare {

using halfscope::Rare;

TEST_CASE("rare: the value is empty until it is set") {
  Rare<std::string> rare;
  CHECK(rare->empty());
  rare.set() = "one";
  rare.set() += " two";
  CHECK(*rare == "one two");
  CHECK(Rare<std::string>()->empty());
  STATIC_REQUIRE(sizeof(Rare<std::string>) == sizeof(void*));
}

TEST_CASE("rare: a copy has its own value, a move takes it along") {
  Rare<std::string> rare;
  rare.set() = "first";
  Rare<std::string> copy = rare;
  copy.set() = "second";
  CHECK(*rare == "first");
  copy = rare;
  rare.set() = "third";
  CHECK(*copy == "first");
  const Rare<std::string> moved = std::move(copy);
  CHECK(*moved == "first");
  copy = Rare<std::string>();
  CHECK(copy->empty());
  STATIC_REQUIRE(std::is_nothrow_move_constructible_v<Rare<std::string>>);
}

}  // namespace test_rare
