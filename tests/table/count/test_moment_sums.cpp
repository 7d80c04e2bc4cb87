// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/moment_sums.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

using namespace halfscope;

TEST_CASE("moments of a tensor in parts are those of the whole, bit by bit", "[table]") {
  std::mt19937 random(1);
  std::normal_distribution<double> normal(0.1, 3);
  std::vector<double> wide;
  for (int i = 0; i < 20'000; ++i) wide.push_back(normal(random));
  wide[17] = std::numeric_limits<double>::infinity();
  wide[4096] = std::nan("");
  const std::vector<float> values(wide.begin(), wide.end());
  const auto parts_of = [](const TensorView& view, std::size_t size) {
    MomentSums sums;
    for (std::size_t first = 0; first < view.count; first += size) {
      const TensorView before{view.dtype, nullptr, first};
      sums.add({view.dtype, view.data + before.bytes(), std::min(size, view.count - first)});
    }
    return sums.value();
  };
  for (const TensorView& view : {view_of(values), view_of(wide)}) {
    const Moments whole = moments(view);
    CHECK(std::abs(whole.mean - 0.1) < 0.2);
    for (const std::size_t blocks : {1, 2, 3, 100}) {
      const Moments found = parts_of(view, blocks * MomentSums::kBlock);
      CHECK(found.mean == whole.mean);
      CHECK(found.sum_squares == whole.sum_squares);
    }
  }
  CHECK(MomentSums().value().mean == 0);
}
