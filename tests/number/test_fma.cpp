// SPDX-License-Identifier: Apache-2.0
// a * b + c rounded once: hard triples in all modes against the oracle.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"

namespace test_fma {

using namespace halfscope;

/// Some of the structured encodings: `exponents` fields spread over the range, ends and middle
/// among them, with both ends and the middle of the fractions.
std::vector<std::uint64_t> few(Format f, std::uint64_t exponents) {
  std::vector<std::uint64_t> out;
  const std::uint64_t last = (std::uint64_t{1} << f.exponent_bits()) - 1;
  for (std::uint64_t i = 0; i <= exponents; ++i) {
    const std::uint64_t field = i * last / exponents;
    for (const std::uint64_t fraction :
         {std::uint64_t{0}, std::uint64_t{1}, f.fraction_mask() / 3, f.fraction_mask()}) {
      out.push_back((field << f.fraction_bits()) | fraction);
      out.push_back(out.back() | f.sign_mask());
    }
  }
  return out;
}

/// The judgement of a triple chosen by `triple(i)`, i in [0, count).
template <typename Triple>
std::string first_wrong(const judge::Target& t, std::uint64_t count, const Triple& triple) {
  return judge::first_wrong_of(
      count, [&](std::uint64_t i) { return judge::judged_fma(t, triple(i), i % 32 == 0); });
}

/// The addend that nearly or wholly cancels a * b, `steps` encodings away from it.
std::uint64_t cancelling(const judge::Target& t, std::uint64_t a, std::uint64_t b, int steps) {
  const oracle::Outcome product =
      oracle::multiply(t.want, oracle::operand(t.want, a), oracle::operand(t.want, b));
  const oracle::Result rounded = oracle::finish(t.want, product, {});
  return (rounded.bits + static_cast<std::uint64_t>(steps)) ^ t.want.sign();
}

constexpr const char* kWide[] = {"binary16", "bfloat16", "tf32", "binary32"};

TEST_CASE("fma: the cube of a few hard operands, all modes", "[number][fma][oracle]") {
  for (const char* name : kWide) {
    CAPTURE(name);
    const judge::Target t(name);
    const std::vector<std::uint64_t> sample = few(t.ours, 5);
    const std::uint64_t n = sample.size();
    REQUIRE(first_wrong(t, n * n * n, [&](std::uint64_t i) {
              return judge::Bits<3>{sample[i / (n * n)], sample[i / n % n], sample[i % n]};
            }) == "");
  }
}

TEST_CASE("fma: every pair of binary16 exponents beside every exponent of the addend",
          "[number][fma][oracle]") {
  // Products far above, far below and in reach of the addend; 32 by 32 by 32 exponents with mixed
  // fractions and signs.
  const judge::Target t("binary16");
  REQUIRE(first_wrong(t, 1U << 15, [&](std::uint64_t i) {
            const auto encoding = [&](std::uint64_t field, std::uint64_t random) {
              return (field % 32 << 10) | (random & 0x83FF);
            };
            const std::uint64_t random = samples::mixed(i);
            return judge::Bits<3>{encoding(i, random), encoding(i >> 5, random >> 16),
                                  encoding(i >> 10, random >> 32)};
          }) == "");
}

TEST_CASE("fma: mixed triples, all modes", "[number][fma][oracle]") {
  for (const char* name : kWide) {
    CAPTURE(name);
    const judge::Target t(name);
    const std::uint64_t mask = 2 * t.ours.magnitude_mask() + 1;
    REQUIRE(first_wrong(t, 1U << 15, [&](std::uint64_t i) {
              return judge::Bits<3>{samples::mixed(3 * i) & mask, samples::mixed(3 * i + 1) & mask,
                                    samples::mixed(3 * i + 2) & mask};
            }) == "");
  }
}

TEST_CASE("fma: the addend cancels the product, or all but its last places",
          "[number][fma][oracle]") {
  for (const char* name : kWide) {
    CAPTURE(name);
    const judge::Target t(name);
    const std::uint64_t mask = 2 * t.ours.magnitude_mask() + 1;
    REQUIRE(first_wrong(t, 1U << 14, [&](std::uint64_t i) {
              const std::uint64_t a = samples::mixed(2 * i) & mask;
              const std::uint64_t b = samples::mixed(2 * i + 1) & mask;
              const int steps = static_cast<int>(i % 5) - 2;
              return judge::Bits<3>{a, b, cancelling(t, a, b, steps) & mask};
            }) == "");
  }
}

TEST_CASE("fma: a product on a tie, and an addend that only breaks it", "[number][fma][oracle]") {
  // (1 + 2^-k)(1 + 2^-(p-k)) = ... + 2^-p ends in a tie of p digits; the addends are the smallest
  // numbers there are, and some that lie a binary32's length and more below the product.
  for (const char* name : kWide) {
    CAPTURE(name);
    const judge::Target t(name);
    const Format f = t.ours;
    const std::uint64_t one = static_cast<std::uint64_t>(t.want.bias) << f.fraction_bits();
    const std::uint64_t odd[] = {one | (std::uint64_t{1} << (f.fraction_bits() / 2)), one | 1};
    std::vector<judge::Bits<3>> triples;
    for (int k = 1; k < f.precision; ++k) {
      const std::uint64_t a = one | (std::uint64_t{1} << (f.fraction_bits() - k));
      const std::uint64_t b = one | (std::uint64_t{1} << (k - 1));
      for (std::uint64_t c = 0; c <= one; c += one / 64) {
        for (const std::uint64_t last : {std::uint64_t{0}, std::uint64_t{1}}) {
          for (const std::uint64_t sign : {std::uint64_t{0}, f.sign_mask()}) {
            triples.push_back({a, b, (c + last) | sign});
            triples.push_back({a ^ f.sign_mask(), b + odd[last] - one, (c + last) | sign});
          }
        }
      }
    }
    REQUIRE(first_wrong(t, triples.size(), [&](std::uint64_t i) { return triples[i]; }) == "");
  }
}

TEST_CASE("fma: sums about the smallest normal number, both tininess rules",
          "[number][fma][oracle]") {
  for (const char* name : kWide) {
    CAPTURE(name);
    const judge::Target t(name);
    const Format f = t.ours;
    const std::uint64_t smallest_normal = f.fraction_mask() + 1;
    const std::uint64_t one = static_cast<std::uint64_t>(t.want.bias) << f.fraction_bits();
    REQUIRE(first_wrong(t, 1U << 13, [&](std::uint64_t i) {
              // c within 8 encodings of 2^emin; a * b from a hundredth of the smallest step to
              // some.
              const std::uint64_t random = samples::mixed(i);
              const std::uint64_t c = smallest_normal - 8 + i % 16;
              const std::uint64_t a = 1 + i / 16 % 4;
              const std::uint64_t down = (random & 7) << f.fraction_bits();
              const std::uint64_t b = one - down + (random >> 3 & f.fraction_mask());
              const std::uint64_t signs = random >> 60;
              return judge::Bits<3>{signs % 2 != 0 ? a | f.sign_mask() : a, b,
                                    signs / 2 % 2 != 0 ? c | f.sign_mask() : c};
            }) == "");
  }
}

TEST_CASE("fma is not the binary32 fma converted", "[number][fma][table]") {
  struct Row {
    const char* what;
    std::uint64_t a, b, c, once, twice;
  };
  const Row rows[] = {
      {"a subnormal addend below binary32's last place", 0x39C0, 0xC3FE, 0x07FE, 0xC1BF, 0xC1BE},
      {"1.5 (1 + 2^-10) is a tie, 2^-24 less is a tie of binary32", 0x3E00, 0x3C01, 0x8001, 0x3E01,
       0x3E02},
      {"1.5 (1 + 3 2^-10) is a tie, 2^-24 more is a tie of binary32", 0x3E00, 0x3C03, 0x0001,
       0x3E05, 0x3E04},
      {"the same below zero", 0xBE00, 0x3C03, 0x8001, 0xBE05, 0xBE04},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const auto wide = [](std::uint64_t bits) {
      return static_cast<float>(to_double(kBinary16, bits));
    };
    const float sum = std::fma(wide(row.a), wide(row.b), wide(row.c));
    CHECK(fused_multiply_add(kBinary16, row.a, row.b, row.c).bits == row.once);
    CHECK(from_float(kBinary16, sum).bits == row.twice);
  }
}

TEST_CASE("fma differs from two roundings in a part of all triples, where the oracle agrees",
          "[number][fma][oracle]") {
  const judge::Target t("binary16");
  int found = 0;
  std::string wrong;
  for (std::uint64_t i = 0; i < 1U << 21 && wrong.empty(); ++i) {
    const std::uint64_t random = samples::mixed(i);
    const judge::Bits<3> x = {random & 0xFFFF, random >> 16 & 0xFFFF, random >> 32 & 0xFFFF};
    std::array<float, 3> wide{};
    for (std::size_t k = 0; k < 3; ++k) wide[k] = static_cast<float>(to_double(kBinary16, x[k]));
    const float sum = std::fma(wide[0], wide[1], wide[2]);
    const Rounded once = fused_multiply_add(kBinary16, x[0], x[1], x[2]);
    if (std::isnan(sum) || from_float(kBinary16, sum).bits == once.bits) continue;
    ++found;
    wrong = judge::judged_fma(t, x, true);
  }
  REQUIRE(wrong == "");
  CHECK(found > 10);  // some 2 in 100,000
}

}  // namespace test_fma
