// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/limits.hpp"

#include <cmath>

#include "catch.hpp"

using namespace halfscope;
using namespace halfscope::reports;

TEST_CASE("the limits of binary16 at scale 1", "[reports][limits]") {
  const charts::Limits at_1 = charts::limits_of({}, 1.0);
  CHECK(at_1.zero.position == -25);
  CHECK(at_1.zero.label == "2^-25");
  CHECK(at_1.subnormal.position == -14);
  CHECK(at_1.subnormal.label == "2^-14");
  CHECK(at_1.largest.position == std::log2(65504.0));
  CHECK(at_1.largest.label == "65504");
}

TEST_CASE("a loss scale moves the limits of unscaled values down", "[reports][limits]") {
  const charts::Limits at_1024 = charts::limits_of({}, 1024.0);
  CHECK(at_1024.zero.position == -35);
  CHECK(at_1024.zero.label == "2^-35");
  CHECK(at_1024.subnormal.label == "2^-24");
  CHECK(at_1024.largest.label == "65504/2^10");
  CHECK(charts::limits_of({}, 0.25).largest.label == "65504*2^2");
  CHECK(charts::limits_of({}, 2.0).largest.label == "65504/2^1");
  const charts::Limits at_1000 = charts::limits_of({}, 1000.0);  // no power of two
  CHECK(at_1000.zero.label == "2^-25/1000");
  CHECK(at_1000.zero.position == Approx(-25 - std::log2(1000.0)));
  CHECK(at_1000.largest.label == "65504/1000");
}

TEST_CASE("flushed subnormals move zero up to the smallest normal", "[reports][limits]") {
  const charts::Limits flushed = charts::limits_of({.subnormals = Subnormals::flush}, 1.0);
  CHECK(flushed.zero.position == -14);
  CHECK(flushed.subnormal.position == -14);
}

TEST_CASE("largest finite values", "[reports][limits]") {
  CHECK(charts::largest_finite(kBinary16) == 65504);
  CHECK(charts::largest_finite(kFloat8E4M3) == 448);  // 1.75 * 2^8: the last encoding is NaN
  CHECK(charts::largest_finite(kFloat8E5M2) == 57344);
  CHECK(charts::largest_finite(kBfloat16) == 0x1.FEp127);
}
