// SPDX-License-Identifier: Apache-2.0
// Stochastic rounding: for every R of few bits and at every threshold of R of up to 32, against the
// definition (stochastic_judge.hpp), of conversions and of arithmetic.
#include <cstdint>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "number/operations_judge.hpp"
#include "number/samples.hpp"
#include "number/stochastic_judge.hpp"

namespace test_stochastic {

using namespace halfscope;
using oracle::Rational;
using stochastic::Exact;

/// Every n-th.
std::vector<std::uint64_t> thinned(const std::vector<std::uint64_t>& all, std::size_t count) {
  std::vector<std::uint64_t> out;
  const std::size_t step = all.size() / count + 1;
  for (std::size_t i = 0; i < all.size(); i += step) out.push_back(all[i]);
  return out;
}

/// Finite and not zero, its sign apart.
struct Number {
  bool negative;
  Rational magnitude;

  Rational value() const { return negative ? Rational(-magnitude) : magnitude; }
};

Number number(const oracle::Layout& f, std::uint64_t bits) {
  const std::uint64_t code = bits & (f.sign() - 1);
  return {code != bits, oracle::value(f, code)};
}

bool is_number(const oracle::Layout& f, std::uint64_t bits) {
  const std::uint64_t code = bits & (f.sign() - 1);
  return code != 0 && code <= f.last();
}

template <typename Ours>
std::string judged(const oracle::Layout& f, const Rational& value, const Ours& ours) {
  if (value == 0) return {};
  const bool negative = value < 0;
  return stochastic::judged(f, {negative ? Rational(-value) : value}, negative, ours);
}

void check_conversions(const char* source, const char* target, std::size_t count) {
  const judge::Target from(source), to(target);
  CAPTURE(from.name, to.name);
  const std::vector<std::uint64_t> sample = thinned(samples::encodings(from.ours, to.ours), count);
  const std::string wrong = judge::first_wrong_of(sample.size(), [&](std::uint64_t i) {
    const std::uint64_t bits = sample[i] | (i % 2 != 0 ? from.ours.sign_mask() : 0);
    if (!is_number(from.want, bits)) return std::string();
    const auto ours = [&](const Modes& m) { return convert(to.ours, from.ours, bits, m); };
    const std::string found = judged(to.want, number(from.want, bits).value(), ours);
    return found.empty() ? found : fmt::format("{:#x}: {}", bits, found);
  });
  REQUIRE(wrong == "");
}

/// Finite operands with hard fractions around 1, both ends of the range, and the square roots of
/// both ends, so that products and quotients get there.
std::vector<std::uint64_t> operands(Format f) {
  std::vector<std::uint64_t> out;
  const auto bias = static_cast<std::uint64_t>(1 - f.emin());
  const auto last = f.largest_finite() >> f.fraction_bits();
  for (const std::uint64_t field : {std::uint64_t{0}, std::uint64_t{1}, (bias + 1) / 2, bias,
                                    bias + 1, bias + (last - bias + 1) / 2, last}) {
    for (const std::uint64_t fraction : samples::fractions(f)) {
      const std::uint64_t bits = (field << f.fraction_bits()) | fraction;
      if (bits == 0 || bits > f.largest_finite()) continue;
      const bool negative = (fraction ^ field) % 3 == 0;
      out.push_back(bits | (negative ? f.sign_mask() : 0));
    }
  }
  return out;
}

/// Triples (a, b, c) of operands, mixed.
template <typename Check>
void for_operands(const judge::Target& t, std::uint64_t cases, const Check& check) {
  CAPTURE(t.name);
  const std::vector<std::uint64_t> sample = operands(t.ours);
  const std::uint64_t count = sample.size();
  const std::string wrong = judge::first_wrong_of(cases, [&](std::uint64_t i) {
    const std::uint64_t random = samples::mixed(i);
    const std::uint64_t a = sample[random % count];
    const std::uint64_t b = sample[(random >> 20) % count];
    const std::uint64_t c = sample[(random >> 40) % count];
    const std::string found = check(a, b, c);
    return found.empty() ? found : fmt::format("{:#x} {:#x} {:#x}: {}", a, b, c, found);
  });
  REQUIRE(wrong == "");
}

constexpr const char* kTargets[] = {"binary16", "bfloat16", "tf32", "e4m3",
                                    "e5m2",     "e3m2",     "e2m3", "e2m1"};

/// Worked out by hand from the definition, like the rows of rows.hpp.
struct Row {
  const char* reason;
  double x;
  int random_bits;
  std::uint32_t last_up;  ///< the last R that rounds up; all ones: every R does
  std::uint64_t down, up;
};

constexpr Row kRows[] = {
    {"half an ulp, r = 1: R = 0 of 0, 1", 0x1.002p0, 1, 0, 0x3C00, 0x3C01},
    {"just above half, r = 1: R = 1 as well", 0x1.002002p0, 1, 1, 0x3C00, 0x3C01},
    {"a quarter, r = 2: 1 of 4", 0x1.001p0, 2, 0, 0x3C00, 0x3C01},
    {"a quarter and a trace, r = 2: 2 of 4", 0x1.0010000000001p0, 2, 1, 0x3C00, 0x3C01},
    {"a trace, r = 1: R = 0", 0x1.0000000000001p0, 1, 0, 0x3C00, 0x3C01},
    {"2^-32 of an ulp, r = 32: R = 0", 0x1.00000000004p0, 32, 0, 0x3C00, 0x3C01},
    {"2^-32 and a trace, r = 32: R = 1", 0x1.0000000000401p0, 32, 1, 0x3C00, 0x3C01},
    {"1 - 2^-32 of an ulp: all but the last", 0x1.003fffffffcp0, 32, 0xFFFFFFFE, 0x3C00, 0x3C01},
    {"a trace more: every R", 0x1.003fffffffc01p0, 32, 0xFFFFFFFF, 0x3C00, 0x3C01},
    {"negative: the magnitude rounds up", -0x1.001p0, 2, 0, 0xBC00, 0xBC01},
    {"the least binary64 subnormal: R = 0", 0x1p-1074, 32, 0, 0x0000, 0x0001},
    {"2^-26, a quarter of the least subnormal", 0x1p-26, 8, 63, 0x0000, 0x0001},
    {"2.75 of the least subnormals", 0x1.6p-23, 2, 2, 0x0002, 0x0003},
    {"the largest subnormal and a half: to normal", 0x1.ffcp-15, 4, 7, 0x03FF, 0x0400},
    {"65504 and a quarter ulp: 1 of 4 to infinity", 65512.0, 2, 0, 0x7BFF, 0x7C00},
    {"-65504 and 31/32 of an ulp", -65535.0, 5, 30, 0xFBFF, 0xFC00},
};

TEST_CASE("stochastic conversions from binary32 round up as often as defined",
          "[number][stochastic][oracle]") {
  for (const char* target : kTargets) check_conversions("binary32", target, 160);
}

TEST_CASE("stochastic conversions from binary64 round up as often as defined",
          "[number][stochastic][oracle]") {
  for (const char* target : kTargets) check_conversions("binary64", target, 160);
  check_conversions("binary64", "binary32", 160);
}

TEST_CASE("stochastic sums round up as often as defined", "[number][stochastic][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    for_operands(t, 160, [&](std::uint64_t a, std::uint64_t b, std::uint64_t) {
      const Rational value = number(t.want, a).value() + number(t.want, b).value();
      return judged(t.want, value, [&](const Modes& m) { return add(t.ours, a, b, m); });
    });
  }
}

TEST_CASE("stochastic products round up as often as defined", "[number][stochastic][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    for_operands(t, 160, [&](std::uint64_t a, std::uint64_t b, std::uint64_t) {
      const Rational value = number(t.want, a).value() * number(t.want, b).value();
      return judged(t.want, value, [&](const Modes& m) { return multiply(t.ours, a, b, m); });
    });
  }
}

TEST_CASE("stochastic fma rounds up as often as defined", "[number][stochastic][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    for_operands(t, 160, [&](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
      const Rational product = number(t.want, a).value() * number(t.want, b).value();
      const Rational value = product + number(t.want, c).value();
      return judged(t.want, value,
                    [&](const Modes& m) { return fused_multiply_add(t.ours, a, b, c, m); });
    });
  }
}

TEST_CASE("stochastic quotients round up as often as defined", "[number][stochastic][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    for_operands(t, 160, [&](std::uint64_t a, std::uint64_t b, std::uint64_t) {
      const Rational value = number(t.want, a).value() / number(t.want, b).value();
      return judged(t.want, value, [&](const Modes& m) { return divide(t.ours, a, b, m); });
    });
  }
}

TEST_CASE("stochastic square roots round up as often as defined", "[number][stochastic][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    for_operands(t, 100, [&](std::uint64_t a, std::uint64_t b, std::uint64_t) {
      // The operands themselves, and with the fraction of another.
      const std::uint64_t x =
          (a & ~t.ours.fraction_mask() & t.ours.magnitude_mask()) | (b & t.ours.fraction_mask());
      if (!is_number(t.want, x)) return std::string();
      return stochastic::judged(t.want, Exact{oracle::value(t.want, x), true}, false,
                                [&](const Modes& m) { return square_root(t.ours, x, m); });
    });
  }
}

TEST_CASE("an exact result never moves, whatever R", "[number][stochastic][table]") {
  for (const std::uint32_t random : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU}) {
    const Modes modes = {.rounding = Rounding::stochastic, .random = random};
    CAPTURE(random);
    for (std::uint64_t a = 0; a <= 0xFFFF; ++a) {
      const std::uint64_t wide = convert(kBinary32, kBinary16, a).bits;
      const Rounded back = convert(kBinary16, kBinary32, wide, modes);
      const bool signaling = (a & 0x7E00) == 0x7C00 && (a & 0x1FF) != 0;
      if (back.bits != (signaling ? a | 0x200 : a) || back.flags != Flags{}) {
        FAIL(fmt::format("{:#x} became {}", a, stochastic::text(back)));
      }
    }
    CHECK(add(kBinary16, 0x3C00, 0xBC00, modes).bits == 0x0000);
    CHECK(add(kBinary16, 0x8000, 0x8000, modes).bits == 0x8000);
    CHECK(square_root(kBinary16, 0x4400, modes).bits == 0x4000);
  }
}

TEST_CASE("stochastic rounding at thresholds worked out by hand", "[number][stochastic][table]") {
  for (const Row& row : kRows) {
    CAPTURE(row.reason);
    const auto rounded = [&](std::uint32_t random) {
      return from_double(
          kBinary16, row.x,
          {.rounding = Rounding::stochastic, .random = random, .random_bits = row.random_bits});
    };
    CHECK(rounded(0).bits == row.up);
    CHECK(rounded(row.last_up).bits == row.up);
    const std::uint64_t largest = (std::uint64_t{1} << row.random_bits) - 1;
    if (row.last_up < largest) {
      CHECK(rounded(row.last_up + 1).bits == row.down);
      CHECK(rounded(static_cast<std::uint32_t>(largest)).bits == row.down);
    }
  }
}

}  // namespace test_stochastic
