// SPDX-License-Identifier: Apache-2.0
// Binary operations on pairs of hard operands, in all modes, against the oracle.
#include "halfscope/number/arithmetic.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"

namespace test_arithmetic {

using namespace halfscope;

/// Every pair of the structured encodings. Every 16th pair is rounded stochastically, too.
void every_structured_pair(const char* name) {
  const judge::Target t(name);
  const std::vector<std::uint64_t> sample = samples::structured(t.ours);
  for (const judge::Binary& op : judge::kBinary) {
    CAPTURE(op.name);
    const std::string wrong = judge::first_wrong_of(sample.size(), [&](std::uint64_t i) {
      std::string found;
      for (std::uint64_t j = 0; j < sample.size() && found.empty(); ++j) {
        found = judge::judged_binary(op, t, sample[i], sample[j], (i + j) % 16 == 0);
      }
      return found;
    });
    REQUIRE(wrong == "");
  }
}

/// Two exponents, and fractions and signs from a generator.
std::uint64_t encoding(Format f, std::uint64_t field, std::uint64_t random) {
  return (field << f.fraction_bits()) | (random & (f.fraction_mask() | f.sign_mask()));
}

/// Pairs of exponents that three calls with thirds 0, 1, 2 exhaust.
void every_third_pair_of_exponents(const char* name, std::uint64_t third) {
  const judge::Target t(name);
  const Format f = t.ours;
  const std::uint64_t fields = std::uint64_t{1} << f.exponent_bits();
  for (const judge::Binary& op : judge::kBinary) {
    CAPTURE(op.name);
    const std::string wrong = judge::first_wrong_of(fields, [&](std::uint64_t x) {
      std::string found;
      for (std::uint64_t y = (x + third) % 3; y < fields && found.empty(); y += 3) {
        const std::uint64_t random = samples::mixed(x * fields + y);
        const std::uint64_t a = encoding(f, x, random);
        const std::uint64_t b = encoding(f, y, samples::mixed(random));
        found = judge::judged_binary(op, t, a, b, y % 32 == 0);
      }
      return found;
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("binary operations of binary16: all exponents, hard fractions, all modes",
          "[number][arithmetic][oracle]") {
  every_structured_pair("binary16");
}

TEST_CASE("binary operations of bfloat16, tf32 and binary32 on hard operands, all modes",
          "[number][arithmetic][oracle]") {
  every_structured_pair("bfloat16");
  every_structured_pair("tf32");
  every_structured_pair("binary32");
}

TEST_CASE("binary operations of the wide formats: pairs of exponents, mixed fractions",
          "[number][arithmetic][oracle]") {
  every_third_pair_of_exponents("bfloat16", 0);
  every_third_pair_of_exponents("tf32", 1);
  every_third_pair_of_exponents("binary32", 2);
}

TEST_CASE("square roots: every binary16 and bfloat16 encoding, all modes",
          "[number][arithmetic][oracle]") {
  for (const char* name : {"binary16", "bfloat16"}) {
    const judge::Target t(name);
    REQUIRE(judge::first_wrong_of(1U << 16, [&](std::uint64_t a) {
              return judge::judged_square_root(t, a, a % 8 == 0);
            }) == "");
  }
}

TEST_CASE("square roots of the wide formats: hard and mixed fractions, every exponent",
          "[number][arithmetic][oracle]") {
  for (const char* name : {"tf32", "binary32"}) {
    const judge::Target t(name);
    const std::uint64_t fields = std::uint64_t{1} << t.ours.exponent_bits();
    REQUIRE(judge::first_wrong_of(fields, [&](std::uint64_t field) {
              std::vector<std::uint64_t> fractions = samples::fractions(t.ours);
              for (std::uint64_t i = 0; i < 64; ++i) {
                fractions.push_back(samples::mixed(field * 64 + i) & t.ours.fraction_mask());
              }
              std::string found;
              for (const std::uint64_t fraction : fractions) {
                const std::uint64_t a = (field << t.ours.fraction_bits()) | fraction;
                if (found.empty()) found = judge::judged_square_root(t, a, fraction % 8 == 1);
              }
              return found;
            }) == "");
  }
}

TEST_CASE("square roots of squares are exact, and beside them inexact",
          "[number][arithmetic][oracle]") {
  // n^2 for every n of 12 bits: the root is a number of binary32 without a digit to spare, or a tie
  // for formats of 11 bits; n^2 + 1 and n^2 - 1 lie within 2^-25 of it.
  const judge::Target t("binary32");
  REQUIRE(judge::first_wrong_of(1U << 12, [&](std::uint64_t n) {
            std::string found;
            for (const std::uint64_t square : {n * n, n * n + 1, n * n + 2 * n}) {
              const float x = static_cast<float>(square);  // below 2^24: exact
              const std::uint64_t a = std::bit_cast<std::uint32_t>(x);
              if (found.empty()) found = judge::judged_square_root(t, a, n % 16 == 0);
            }
            return found;
          }) == "");
}

}  // namespace test_arithmetic
