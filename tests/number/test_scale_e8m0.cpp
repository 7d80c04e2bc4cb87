// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/scale_e8m0.hpp"

#include <cmath>
#include <cstdint>

#include "catch.hpp"

namespace test_scale_e8m0 {

using namespace halfscope;

TEST_CASE("E8M0 is 2^(b-127), and NaN", "[number][table]") {
  for (int b = 0; b < 255; ++b) {
    const auto scale = static_cast<std::uint8_t>(b);
    CHECK(e8m0_to_float(scale) == std::ldexp(1.0f, b - 127));
    CHECK(e8m0_exponent(scale) == b - 127);
    CHECK(e8m0_from_exponent(b - 127) == scale);
  }
  CHECK(std::isnan(e8m0_to_float(kE8M0Nan)));
  CHECK(e8m0_from_exponent(-128) == 0);
  CHECK(e8m0_from_exponent(-1000) == 0);
  CHECK(e8m0_from_exponent(128) == 254);
  CHECK(e8m0_from_exponent(1000) == 254);
}

}  // namespace test_scale_e8m0
