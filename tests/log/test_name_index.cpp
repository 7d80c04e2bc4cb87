// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/name_index.hpp"

#include <string>
#include <vector>

#include "catch.hpp"

namespace test_name_index {

using namespace halfscope;

TEST_CASE("places are found by their names, however many there are", "[log]") {
  struct Named {
    std::string name;
  };
  std::vector<Named> list;
  log::NameIndex<std::vector<Named>> index(list);
  CHECK_FALSE(index.find(""));
  for (std::size_t i = 0; i < 5000; ++i) {
    list.push_back({i == 0 ? "" : "layer" + std::to_string(i)});
    REQUIRE_FALSE(index.find(list.back().name));
    index.add(i);
  }
  for (std::size_t i = 0; i < list.size(); ++i) REQUIRE(index.find(list[i].name) == i);
  CHECK_FALSE(index.find("layer5000"));
  index.clear();
  CHECK_FALSE(index.find("layer1"));
  index.add(7);
  CHECK(index.find("layer7") == 7);
}

}  // namespace test_name_index
