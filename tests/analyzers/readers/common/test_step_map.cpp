// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/step_map.hpp"

#include <map>
#include <random>

#include "catch.hpp"

namespace test_step_map {

using namespace halfscope::analyzers::readers;

using Map = common::StepMap<int>;
using Wanted = std::map<std::int64_t, int>;

bool same(Map& map, const Wanted& wanted) {
  Wanted found;
  bool ascending = true;
  map.for_each([&](std::int64_t step, int value) {
    ascending = ascending && (found.empty() || found.rbegin()->first < step);
    found.emplace(step, value);
  });
  return ascending && found == wanted && map.empty() == wanted.empty() &&
         (wanted.empty() || map.back().step == wanted.rbegin()->first);
}

bool same_around(const Map& map, const Wanted& wanted, std::int64_t step) {
  const auto [before, from] = map.around(step);
  const auto at = wanted.lower_bound(step);
  const bool has_before = at != wanted.begin(), has_from = at != wanted.end();
  if ((before != nullptr) != has_before || (from != nullptr) != has_from) return false;
  if (has_before && before->step != std::prev(at)->first) return false;
  return !has_from || (from->step == at->first && from->value == at->second);
}

TEST_CASE("values by step are a map's, in whatever order steps come", "[table]") {
  std::mt19937 random(5);
  Map map;
  Wanted wanted;
  int value = 0;
  const auto put = [&](std::int64_t step) { map[step] = wanted[step] = ++value; };
  for (int i = 0; i < 3000; ++i) put(2 * i);      // in order
  for (int i = 0; i < 3000; ++i) put(2 * i);      // once more, as of another tag
  for (int i = 0; i < 3000; ++i) put(2 * i + 1);  // between
  for (int i = 0; i < 3000; ++i) put(-i);         // downwards
  CHECK(same(map, wanted));
  for (int i = 0; i < 20'000; ++i) put(static_cast<std::int64_t>(random() % 20'000) - 5000);
  CHECK(same(map, wanted));
  for (std::int64_t step = -5100; step < 15'100; ++step) {
    if (!same_around(map, wanted, step)) FAIL(step);
  }
  for (const std::int64_t from : {14'000, 3001, 3000, -20, -6000}) {
    map.erase_from(from);
    wanted.erase(wanted.lower_bound(from), wanted.end());
    CHECK(same(map, wanted));
    if (!wanted.empty()) put(from);
    CHECK(same(map, wanted));
  }
}

TEST_CASE("a map of steps is drained in order and may be filled again", "[table]") {
  Map map;
  for (const int step : {3, 1, 2}) map[step] = 10 * step;
  std::vector<int> seen;
  map.drain([&](int value) { seen.push_back(value); });
  CHECK(seen == std::vector{10, 20, 30});
  CHECK(map.empty());
  map[7] = 1;
  CHECK(map.back().step == 7);
}

}  // namespace test_step_map
