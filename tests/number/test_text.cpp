// SPDX-License-Identifier: Apache-2.0
// Writing numbers: the shortest decimal against its definition in exact rationals, digits in every
// direction, hexadecimal.
#include "halfscope/number/text.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "number/operations_judge.hpp"
#include "number/text_judge.hpp"

namespace test_text {

using namespace halfscope;

std::string text_of(float x) {
  std::array<char, 64> buffer;
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr};
}

/// The neighbours of x > 0 with n significant digits: integer * 10^exponent, and one more.
struct Enclosed {
  oracle::Integer integer;
  int exponent;
  oracle::Rational rest;  ///< of the way to the upper one, in [0, 1)
};

Enclosed enclosed(const oracle::Rational& x, int n) {
  int exponent = -200;
  const auto scaled = [&] {
    const oracle::Integer unit = text_judge::power_of(10, std::abs(exponent));
    return exponent < 0 ? oracle::Rational(x * unit) : oracle::Rational(x / unit);
  };
  const oracle::Integer limit = text_judge::power_of(10, n);
  // Binary search would do; a step of the right size each time is as short.
  for (oracle::Rational y = scaled(); y >= limit; y = scaled()) {
    const oracle::Integer whole = numerator(y) / denominator(y);
    exponent += std::max(1, static_cast<int>(whole.str().size()) - n);
  }
  const oracle::Rational y = scaled();
  const oracle::Integer whole = numerator(y) / denominator(y);
  return {whole, exponent, y - whole};
}

bool goes_up(const Enclosed& x, bool negative, const Modes& modes) {
  if (x.rest == 0) return false;
  const bool odd = x.integer % 2 != 0;
  const int against_half = x.rest.compare(oracle::Rational(1, 2));
  switch (modes.rounding) {
    case Rounding::ties_to_even: return against_half > 0 || (against_half == 0 && odd);
    case Rounding::ties_to_away: return against_half >= 0;
    case Rounding::toward_zero: return false;
    case Rounding::upward: return !negative;
    case Rounding::downward: return negative;
    case Rounding::to_odd: return !odd;
    case Rounding::stochastic: break;
  }
  const oracle::Integer words = oracle::Integer(1) << modes.random_bits;
  return x.rest > oracle::Rational(modes.random, words);
}

/// Empty when to_text rounds (-1)^negative * x to n digits as it should.
std::string judged_digits(const judge::Target& t, std::uint64_t code, int n, const Modes& modes) {
  const Enclosed x = enclosed(oracle::value(t.want, code), n);
  for (const bool negative : {false, true}) {
    const oracle::Integer integer = x.integer + (goes_up(x, negative, modes) ? 1 : 0);
    std::string digits = integer.str();
    int leading = x.exponent + static_cast<int>(digits.size()) - 1;
    digits.resize(static_cast<std::size_t>(n));  // 999 + 1 has one more, a zero
    std::string want = (negative ? "-" : "") + digits.substr(0, 1);
    if (n > 1) want += "." + digits.substr(1);
    want += fmt::format("e{}{:02}", leading < 0 ? '-' : '+', std::abs(leading));
    const std::uint64_t bits = code | (negative ? t.ours.sign_mask() : 0);
    const std::string found = to_text(t.ours, bits, n, modes);
    if (found != want) {
      return fmt::format("{} {:#x} to {} digits, {}: found {}, expected {}", t.name, bits, n,
                         judge::describe(modes), found, want);
    }
  }
  return {};
}

TEST_CASE("the shortest decimal that reads back", "[number][text][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    const std::vector<std::uint64_t> all = text_judge::encodings(t.ours);
    const std::string wrong = judge::first_wrong_of(all.size(), [&](std::uint64_t i) {
      const std::uint64_t code = all[i];
      const std::string want = text_judge::shortest(t.want, code);
      const std::string found = to_text(t.ours, code);
      if (found == want && to_text(t.ours, code | t.ours.sign_mask()) == "-" + want) {
        return std::string();
      }
      return fmt::format("{} {:#x}: found {}, expected {}", t.name, code, found, want);
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("every encoding comes back from its texts, NaNs too", "[number][text]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    if (t.ours.width > 19) continue;
    std::uint64_t wrong = 0;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << t.ours.width; ++bits) {
      const auto shortest = from_text(t.ours, to_text(t.ours, bits));
      const auto hexadecimal = from_text(t.ours, to_hex_text(t.ours, bits));
      const bool exact = hexadecimal && hexadecimal->flags == Flags{};
      if (!shortest || shortest->bits != bits || !exact || hexadecimal->bits != bits) wrong = bits;
    }
    CAPTURE(t.name);
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("binary32 is written as std::to_chars writes a float", "[number][text]") {
  std::uint32_t wrong = 0;
  const auto check = [&](std::uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    const std::string text = to_text(kBinary32, bits);
    if (text != text_of(x) || from_text(kBinary32, text)->bits != bits) wrong = bits;
  };
  for (const std::uint64_t code : text_judge::encodings(kBinary32)) {
    check(static_cast<std::uint32_t>(code));
  }
  for (std::uint32_t bits = 1; bits < 0xFF80'0000; bits += 65'521 * 3) {
    if ((bits & 0x7FFF'FFFF) <= 0x7F80'0000) check(bits);
  }
  for (int i = 1; i < 200'000; i += 3) {  // decimals of few digits, where ties between digits occur
    check(std::bit_cast<std::uint32_t>(static_cast<float>(i) * 16.0F));
    check(std::bit_cast<std::uint32_t>(static_cast<float>(i) * 4.125F));
    check(std::bit_cast<std::uint32_t>(static_cast<float>(i) * 0.001F));
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("n digits, in every direction", "[number][text][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    const std::vector<std::uint64_t> all = text_judge::encodings(t.ours);
    const std::uint64_t step = all.size() / 1000 + 1;
    const std::string wrong = judge::first_wrong_of(all.size() / step, [&](std::uint64_t i) {
      const std::uint64_t code = all[i * step + i % step];
      const int n = 1 + static_cast<int>(i % 6);
      for (const judge::Direction& row : judge::kDirections) {
        const std::string bad = judged_digits(t, code, n, {.rounding = row.mode});
        if (!bad.empty()) return bad;
      }
      // The least R that keeps the magnitude, and the one before.
      const Enclosed x = enclosed(oracle::value(t.want, code), n);
      for (const int bits : {32, 8, 1}) {
        const oracle::Rational scaled = x.rest * (oracle::Integer(1) << bits);
        const auto below =
            static_cast<std::uint32_t>(oracle::Integer(numerator(scaled) / denominator(scaled)));
        for (const std::uint32_t random : {below, below == 0 ? 0 : below - 1}) {
          const Modes modes = {
              .rounding = Rounding::stochastic, .random = random, .random_bits = bits};
          const std::string bad = judged_digits(t, code, n, modes);
          if (!bad.empty()) return bad;
        }
      }
      return judged_digits(t, code, 130, {});  // more than there are
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("hexadecimal text is the value", "[number][text][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    std::string wrong;
    for (const std::uint64_t code : text_judge::encodings(t.ours)) {
      const std::string text = to_hex_text(t.ours, code);
      const bool normalised = text.substr(0, 3) == "0x1" && (text[3] == '.' || text[3] == 'p');
      const bool no_idle_zero = text.find("0p") == std::string::npos;
      if (normalised && no_idle_zero && text_judge::value_of(text) == oracle::value(t.want, code)) {
        continue;
      }
      wrong = fmt::format("{:#x}: {}", code, text);
    }
    REQUIRE(wrong == "");
  }
}

TEST_CASE("texts worked out by hand", "[number][text][table]") {
  struct Row {
    const char* what;
    Format f;
    std::uint64_t bits;
    const char *shortest, *three_digits, *hexadecimal;
  };
  const Row rows[] = {
      {"0.1 is none, but reads back", kBinary16, 0x2E66, "0.1", "1.00e-01", "0x1.998p-4"},
      {"a whole number has its own digits", kBinary16, 0x7BFF, "65504", "6.55e+04", "0x1.ffcp+15"},
      {"2^-24", kBinary16, 0x0001, "6e-08", "5.96e-08", "0x1p-24"},
      {"the largest subnormal", kBinary16, 0x03FF, "6.1e-05", "6.10e-05", "0x1.ff8p-15"},
      {"2^-14: the half interval below takes a digit more", kBinary16, 0x0400, "6.104e-05",
       "6.10e-05", "0x1p-14"},
      {"fixed where no longer", kBinary16, 0x1419, "0.001", "1.00e-03", "0x1.064p-10"},
      {"minus one", kBinary16, 0xBC00, "-1", "-1.00e+00", "-0x1p+0"},
      {"zero", kBinary16, 0x0000, "0", "0.00e+00", "0x0p+0"},
      {"minus zero", kBinary16, 0x8000, "-0", "-0.00e+00", "-0x0p+0"},
      {"infinity", kBinary16, 0xFC00, "-inf", "-inf", "-inf"},
      {"quiet NaN", kBinary16, 0x7E00, "nan", "nan", "nan"},
      {"its payload", kBinary16, 0xFFFF, "-nan(0x1ff)", "-nan(0x1ff)", "-nan(0x1ff)"},
      {"signaling NaN", kBinary16, 0x7D00, "snan(0x100)", "snan(0x100)", "snan(0x100)"},
      {"E4M3's largest", kFloat8E4M3, 0x7E, "448", "4.48e+02", "0x1.cp+8"},
      {"E4M3's NaN", kFloat8E4M3, 0xFF, "-nan", "-nan", "-nan"},
      {"E5M2's largest", kFloat8E5M2, 0x7B, "57344", "5.73e+04", "0x1.cp+15"},
      {"E2M3's largest: 8 would come back, but lies half an ulp off", kFloat6E2M3, 0x1F, "7.5",
       "7.50e+00", "0x1.ep+2"},
      {"FP4", kFloat4E2M1, 0x9, "-0.5", "-5.00e-01", "-0x1p-1"},
      {"bits above the width are not part of it", kFloat4E2M1, 0xF9, "-0.5", "-5.00e-01",
       "-0x1p-1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(to_text(row.f, row.bits) == row.shortest);
    CHECK(to_text(row.f, row.bits, 3) == row.three_digits);
    CHECK(to_hex_text(row.f, row.bits) == row.hexadecimal);
  }
  CHECK(to_text(kBinary16, 0x7BFF, 1, {.rounding = Rounding::upward}) == "7e+04");
  CHECK(to_text(kBinary16, 0x3BFF, 2, {.rounding = Rounding::ties_to_away}) == "1.0e+00");
}

TEST_CASE("texts that are not written", "[number][text]") {
  CHECK_THROWS_AS(to_text(kBinary64, 0), std::invalid_argument);
  CHECK_THROWS_AS(to_text(kBinary64, 0, 3), std::invalid_argument);
  CHECK_THROWS_AS(to_hex_text(kBinary64, 0), std::invalid_argument);
  CHECK_THROWS_AS(to_text(kBinary16, 0x3C00, 0), std::invalid_argument);
}

}  // namespace test_text
