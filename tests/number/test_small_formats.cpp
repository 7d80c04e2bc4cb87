// SPDX-License-Identifier: Apache-2.0
// Formats of 8 bits and fewer: every operation on every operand, in all modes, against the oracle.
#include <cstdint>
#include <string>

#include "catch.hpp"
#include "number/operations_judge.hpp"

namespace test_small_formats {

using namespace halfscope;

TEST_CASE("binary operations of formats of 8 bits and fewer: all pairs, all modes",
          "[number][arithmetic][oracle]") {
  for (const judge::Target& t : judge::small_formats()) {
    const std::uint64_t count = std::uint64_t{1} << t.ours.width;
    for (const judge::Binary& op : judge::kBinary) {
      CAPTURE(t.name, op.name);
      const std::string wrong = judge::first_wrong_of(count, [&](std::uint64_t a) {
        std::string found;
        for (std::uint64_t b = 0; b < count && found.empty(); ++b) {
          found = judge::judged_binary(op, t, a, b, (a + b) % 4 == 0);
        }
        return found;
      });
      REQUIRE(wrong == "");
    }
  }
}

TEST_CASE("square roots of formats of 8 bits and fewer: all encodings, all modes",
          "[number][arithmetic][oracle]") {
  for (const judge::Target& t : judge::small_formats()) {
    CAPTURE(t.name);
    REQUIRE(judge::first_wrong_of(std::uint64_t{1} << t.ours.width, [&](std::uint64_t a) {
              return judge::judged_square_root(t, a, true);
            }) == "");
  }
}

TEST_CASE("fma of formats of 6 bits and fewer: all triples, all modes",
          "[number][arithmetic][fma][oracle]") {
  for (const judge::Target& t : judge::small_formats()) {
    if (t.ours.width > 6) continue;
    CAPTURE(t.name);
    const int width = t.ours.width;
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    REQUIRE(judge::first_wrong_of(std::uint64_t{1} << 2 * width, [&](std::uint64_t pair) {
              std::string found;
              for (std::uint64_t c = 0; c <= mask && found.empty(); ++c) {
                const judge::Bits<3> bits = {pair >> width, pair & mask, c};
                found = judge::judged_fma(t, bits, (pair + c) % 16 == 0);
              }
              return found;
            }) == "");
  }
}

TEST_CASE("fma of 8-bit formats: every 61st triple, all modes",
          "[number][arithmetic][fma][oracle]") {
  // 61 is odd and shares no factor with 2^24: every pair and every addend occurs.
  for (const judge::Target& t : judge::small_formats()) {
    if (t.ours.width != 8) continue;
    CAPTURE(t.name);
    constexpr std::uint64_t kTriples = 1U << 24;
    REQUIRE(judge::first_wrong_of(kTriples / 61, [&](std::uint64_t i) {
              const std::uint64_t triple = i * 61;
              const judge::Bits<3> bits = {triple >> 16, triple >> 8 & 0xFF, triple & 0xFF};
              return judge::judged_fma(t, bits, i % 16 == 0);
            }) == "");
  }
}

}  // namespace test_small_formats
