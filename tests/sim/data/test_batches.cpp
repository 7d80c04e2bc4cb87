// SPDX-License-Identifier: Apache-2.0
#include "sim/data/batches.hpp"

#include "catch.hpp"

namespace sim_test::test_batches {

using namespace halfscope::sim;

TEST_CASE("batches made ahead are the data's, in any order") {
  const auto data = data::open_data("large-images", 3);
  constexpr std::int64_t kSize = 7;  // 7 images of 224 x 224 x 3 values: more than 2^20
  data::Batches batches(*data, kSize);
  for (const std::int64_t index : {0, 1, 2, 2, 9, 10, 0}) {
    const data::Batch found = batches.take(index), wanted = data->batch(index, kSize);
    CHECK(found.shape == wanted.shape);
    CHECK(found.labels == wanted.labels);
    CHECK((found.inputs == wanted.inputs));
  }
}

}  // namespace sim_test::test_batches
