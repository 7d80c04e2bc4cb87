// SPDX-License-Identifier: Apache-2.0
// The counter generator against its authors' known answers, and stochastic rounding's statistics.
#include "halfscope/number/random.hpp"

#include <cmath>

#include "catch.hpp"
#include "inputs.hpp"

namespace test_random {

using namespace arrays;

TEST_CASE("Philox4x32-10 gives Random123's known answers", "[array][random][table]") {
  // kat_vectors of Random123 1.14, lines philox4x32 10.
  struct Row {
    PhiloxBlock counter;
    std::uint32_t key0, key1;
    PhiloxBlock answer;
  };
  constexpr Row kRows[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0xa4093822,
       0x299f31d0,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const Row& row : kRows) CHECK(philox4x32(row.counter, row.key0, row.key1) == row.answer);
  STATIC_REQUIRE(random_word(0, 2) == 0xbc57ac4c);
}

TEST_CASE("random_word counts blocks of four", "[array][random]") {
  constexpr std::uint64_t kSeed = 0xFEDCBA9876543210, kIndex = 0x123456789ABCDEF3;
  const PhiloxBlock block = philox4x32({{0x26AF37BC, 0x048D159E, 0, 0}}, 0x76543210, 0xFEDCBA98);
  CHECK(random_word(kSeed, kIndex) == block.words[3]);
}

TEST_CASE("vectors draw the words of the definition, across the largest index too",
          "[array][random]") {
  // 1 + 2^-11 (1 - 2^-13) lies 1/2 - 2^-14 of the way up: R decides, and is seen in the result.
  const std::vector<float> in(5000, 1.0f + 0x1p-11f - 0x1p-23f);
  for (const std::string& target : targets()) {
    const OnTarget only(target);
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0xFFFFFFFFF0},
                                      ~std::uint64_t{0} - 1001, std::uint64_t{0x3FFFFFFFD}}) {
      std::vector<std::uint16_t> out(in.size());
      convert(kBinary16, in, out,
              {.modes = {.rounding = Rounding::stochastic}, .seed = 77, .first_index = first});
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const bool up = random_word(77, first + i) < 0x7FF80000;
        if (out[i] != (up ? 0x3C01 : 0x3C00)) wrong = i + 1;
      }
      REQUIRE(wrong == 0);
    }
  }
}

TEST_CASE("stochastic quantisation rounds up in proportion", "[array][random][quantise]") {
  constexpr std::size_t kCount = 1 << 20;
  struct Row {
    float x, low, step;
    double fraction;
  };
  const Row rows[] = {
      {1.0f + 0.25f * 0x1p-10f, 1.0f, 0x1p-10f, 0.25},
      {-(1.0f + 0.875f * 0x1p-10f), -1.0f, -0x1p-10f, 0.875},
      {0x1p-24f * 2.5f, 0x1p-23f, 0x1p-24f, 0.5},       // subnormal
      {0x1p-27f, 0.0f, 0x1p-24f, 0.125},                // to zero or the smallest subnormal
      {65504.0f + 8.0f, 65504.0f, INFINITY, 8.0 / 32},  // to the largest or infinity
      {0.75f, 0.75f, 0x1p-11f, 0},                      // exact values never move
  };
  std::uint64_t seed = 1;
  for (const Row& row : rows) {
    std::vector<float> values(kCount, row.x);
    quantise(kBinary16, values, {.modes = {.rounding = Rounding::stochastic}, .seed = seed++});
    std::size_t up = 0, neither = 0;
    for (const float v : values) {
      up += v == row.low + row.step ? 1 : 0;
      neither += v != row.low && v != row.low + row.step ? 1 : 0;
    }
    CAPTURE(row.x);
    CHECK(neither == 0);
    // Five standard deviations of a binomial count; the seeds are fixed, so this never flickers.
    const double n = kCount, mean = n * row.fraction;
    CHECK(std::abs(static_cast<double>(up) - mean) <=
          5 * std::sqrt(n * row.fraction * (1 - row.fraction)));
  }
}

}  // namespace test_random
