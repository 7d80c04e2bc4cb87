// SPDX-License-Identifier: Apache-2.0
// Histogram messages of writers that leave fields away: what they can hold, and no more.
#include "analyzers/readers/tensorboard/tensorboard_histogram.hpp"

#include <cmath>
#include <initializer_list>
#include <limits>

#include "catch.hpp"
#include "halfscope/log/tensor_value.hpp"

namespace test_tensorboard_histogram {

using namespace halfscope;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

log::proto::HistogramProto buckets(std::initializer_list<double> limits,
                                   std::initializer_list<double> counts) {
  log::proto::HistogramProto proto;
  for (const double limit : limits) proto.add_bucket_limit(limit);
  for (const double count : counts) proto.add_bucket(count);
  return proto;
}

TEST_CASE("TensorBoard: without min and max the first bucket reaches to minus infinity",
          "[tensorboard]") {
  const BoundedTable table =
      analyzers::readers::tensorboard::table_of(buckets({-1, 0, 1}, {3, 4, 5}));
  CHECK(table.total() == 12);
  CHECK(table.inf() == Interval(0, 3));
  CHECK(table.nan() == Interval(0));
  CHECK(table.zero() == Interval(0, 5));  // of [0, 1]
  CHECK_FALSE(table.largest());
  CHECK(table.at_or_above(magnitude_of(1.5)) == Interval(0, 3));

  log::proto::HistogramProto infinite = buckets({-1, 0, 1}, {3, 4, 5});
  infinite.set_min(-kInfinity);
  infinite.set_max(0.5);
  CHECK(analyzers::readers::tensorboard::table_of(infinite).inf() == Interval(1, 3));
}

TEST_CASE("TensorBoard: min and max of 0 are none where several buckets are occupied",
          "[tensorboard]") {
  const BoundedTable unset =
      analyzers::readers::tensorboard::table_of(buckets({-1, 0, 1}, {0, 4, 5}));
  CHECK(unset.total() == 9);
  CHECK(unset.zero() == Interval(0, 5));
  CHECK(unset.at_or_above(magnitude_of(0x1p-30)) == Interval(0, 9));
  // One bucket with zero in it may well hold zeros alone, as written for a tensor of zeros.
  const BoundedTable zeros = analyzers::readers::tensorboard::table_of(buckets({0, 1e-12}, {0, 7}));
  CHECK(zeros.zero() == Interval(7));
}

}  // namespace test_tensorboard_histogram
