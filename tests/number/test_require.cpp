// SPDX-License-Identifier: Apache-2.0
// What the scalar functions refuse rather than answer wrongly.
#include "halfscope/number/require.hpp"

#include <stdexcept>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/remainder.hpp"

namespace test_require {

using namespace halfscope;

TEST_CASE("arithmetic refuses binary64, conversions take it", "[number][table]") {
  const std::uint64_t one = 0x3FF0000000000000;
  CHECK_THROWS_AS(add(kBinary64, one, one), std::invalid_argument);
  CHECK_THROWS_AS(subtract(kBinary64, one, one), std::invalid_argument);
  CHECK_THROWS_AS(multiply(kBinary64, one, one), std::invalid_argument);
  CHECK_THROWS_AS(divide(kBinary64, one, one), std::invalid_argument);
  CHECK_THROWS_AS(fused_multiply_add(kBinary64, one, one, one), std::invalid_argument);
  CHECK_THROWS_AS(square_root(kBinary64, one), std::invalid_argument);
  CHECK_THROWS_AS(remainder(kBinary64, one, one), std::invalid_argument);
  CHECK(convert(kBinary16, kBinary64, one).bits == 0x3C00);
  CHECK(add(kBinary32, 0x3F800000, 0x3F800000).bits == 0x40000000);  // 24 bits are the most
}

TEST_CASE("stochastic rounding refuses random bits it has no use for", "[number][table]") {
  const auto rounded = [](int random_bits, std::uint32_t random) {
    const Modes modes = {
        .rounding = Rounding::stochastic, .random = random, .random_bits = random_bits};
    return from_double(kBinary16, 0.1, modes).bits;
  };
  for (const int random_bits : {-1, 0, 33, 64}) {
    CAPTURE(random_bits);
    CHECK_THROWS_AS(rounded(random_bits, 0), std::invalid_argument);
  }
  CHECK_THROWS_AS(rounded(4, 16), std::invalid_argument);
  CHECK_THROWS_AS(rounded(31, 0x80000000), std::invalid_argument);
  CHECK(rounded(1, 0) == 0x2E67);  // 0.1 is 0x2E66 and 0.4 of a unit
  CHECK(rounded(4, 15) == 0x2E66);
  CHECK(rounded(32, 0xFFFFFFFF) == 0x2E66);
  CHECK(from_double(kBinary16, 0.1, {.random_bits = 0}).bits == 0x2E66);  // not asked for
}

}  // namespace test_require
