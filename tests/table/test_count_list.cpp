// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count_list.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

namespace test_count_list {

namespace hs = halfscope;

std::vector<std::uint64_t> all_of(const hs::CountList& list) {
  const hs::CountSpan span = list.span(0, list.size());
  return {span.begin(), span.end()};
}

TEST_CASE("counts are kept whatever their size, and so are those beside them") {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t count :
       {std::uint64_t{0xFF}, std::uint64_t{0x100}, std::uint64_t{0xFFFF}, std::uint64_t{0x10000},
        std::uint64_t{0xFFFFFFFF}, std::uint64_t{0x100000000}, kMost}) {
    INFO(count);
    hs::CountList list;
    list.grow_back(3);
    list.add(0, 7);
    list.add(1, count - 1);
    list.add(1, 1);
    CHECK(all_of(list) == std::vector<std::uint64_t>{7, count, 0});
  }
}

TEST_CASE("a list is what a vector of 64-bit counts is") {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    hs::CountList list;
    std::vector<std::uint64_t> wanted;
    for (int i = 0; i < 60; ++i) {
      const std::size_t more = random() % 4;
      if (random() % 4 == 0) {
        list.grow_front(more);
        wanted.insert(wanted.begin(), more, 0);
      } else if (random() % 3 == 0) {
        list.grow_back(more);
        wanted.resize(wanted.size() + more);
      } else if (!wanted.empty()) {
        const std::size_t at = random() % wanted.size();
        const std::uint64_t count = random() >> (random() % 64);
        list.add(at, count);
        wanted[at] += count;
      }
    }
    REQUIRE(all_of(list) == wanted);
    REQUIRE(list.empty() == wanted.empty());
    const std::size_t from = wanted.empty() ? 0 : random() % wanted.size();
    std::uint64_t sum = 0;
    for (std::size_t i = from; i < wanted.size(); ++i) sum += wanted[i];
    REQUIRE(list.span(0, list.size()).subspan(from).sum() == sum);
    REQUIRE(list.span(from, list.size() - from).size() == wanted.size() - from);
  }
}

}  // namespace test_count_list
