// SPDX-License-Identifier: Apache-2.0
#include "reports/charts/charts.hpp"

#include <cmath>

#include "catch.hpp"

namespace test_limits {

using namespace halfscope;
using namespace halfscope::reports;

TEST_CASE("the limits of binary16 at scale 1", "[reports][limits]") {
  const charts::Limits at_1 = charts::limits_of({}, 1.0);
  CHECK(at_1.zero.position == -25);
  CHECK(at_1.zero.label == "2^-25");
  CHECK(at_1.subnormal.position == -14);
  CHECK(at_1.subnormal.label == "2^-14");
  CHECK(at_1.overflow.position == std::log2(65520.0));
  CHECK(at_1.overflow.label == "65520");
}

TEST_CASE("a loss scale moves the limits of unscaled values down", "[reports][limits]") {
  const charts::Limits at_1024 = charts::limits_of({}, 1024.0);
  CHECK(at_1024.zero.position == -35);
  CHECK(at_1024.zero.label == "2^-35");
  CHECK(at_1024.subnormal.label == "2^-24");
  CHECK(at_1024.overflow.label == "65520/2^10");
  CHECK(charts::limits_of({}, 0.25).overflow.label == "65520*2^2");
  CHECK(charts::limits_of({}, 2.0).overflow.label == "65520/2^1");
  const charts::Limits at_1000 = charts::limits_of({}, 1000.0);  // no power of two
  CHECK(at_1000.zero.label == "2^-25/1000");
  CHECK(at_1000.zero.position == Approx(-25 - std::log2(1000.0)));
  CHECK(at_1000.overflow.label == "65520/1000");
}

TEST_CASE("flushed subnormals move zero up to the smallest normal", "[reports][limits]") {
  const charts::Limits flushed = charts::limits_of({.subnormals = Subnormals::flush}, 1.0);
  CHECK(flushed.zero.position == -14);
  CHECK(flushed.subnormal.position == -14);
}

TEST_CASE("overflow starts half an ulp above the largest finite value", "[reports][limits]") {
  const auto label = [](std::string_view name) {
    const NamedFormat& format = *find_format(name);
    return charts::limits_of({.name = format.name, .format = format.format}, 1).overflow.label;
  };
  CHECK(label("binary16") == "65520");
  CHECK(label("e5m2") == "61440");
  CHECK(label("bfloat16") == "3.4e+38");
}

}  // namespace test_limits
