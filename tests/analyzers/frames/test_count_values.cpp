// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/count_values.hpp"

#include "analyzers/fits.hpp"
#include "catch.hpp"

namespace test_count_values {

using namespace halfscope;
using namespace halfscope::analyzers;

TEST_CASE(
    "moments and sums taken with the table are those of the tensor, and the table is the same",
    "[table]") {
  const test::Values values = test::gradients((std::size_t{1} << 20) + 5000, 3);  // two slices
  const TensorView view = test::view_of(values);
  for (const double scale : {1.0, 1000.0}) {  // one element at a time, too
    std::uint64_t bytes = 0;
    const auto read = [&](std::uint64_t more) { bytes += more; };
    MomentSums sums;
    MagnitudeSums magnitudes, expected;
    expected.add(view);
    const BinadeTable with = frames::count_values(view, {}, scale, read, {&sums, &magnitudes});
    CHECK(bytes == view.bytes());
    CHECK(with == frames::count_values(view, {}, scale, read));
    CHECK(magnitudes == expected);
    CHECK(sums.value().mean == moments(view).mean);
    CHECK(sums.value().sum_squares == moments(view).sum_squares);
  }
}

}  // namespace test_count_values
