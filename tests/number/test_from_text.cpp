// SPDX-License-Identifier: Apache-2.0
// Reading numbers: beside every tie, with texts of hundreds of digits, against exact rationals.
#include "halfscope/number/from_text.hpp"

#include <cctype>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "number/operations_judge.hpp"
#include "number/text_judge.hpp"

namespace test_from_text {

using namespace halfscope;
using text_judge::Decimal;

/// What parsing to binary64 and narrowing gives: two roundings.
std::uint64_t by_way_of_binary64(Format f, const std::string& text) {
  double x = 0;
  std::from_chars(text.data(), text.data() + text.size(), x);
  return from_double(f, x).bits;
}

/// Empty when from_text reads the text, of either sign, as the oracle does, in all modes.
std::string judged(const judge::Target& t, const std::string& text, bool stochastic = true) {
  const oracle::Rational value = text_judge::value_of(text);
  const oracle::Quotient x = {numerator(value), denominator(value), 0};
  for (const bool negative : {false, true}) {
    const oracle::Outcome want =
        x.n == 0 ? oracle::zero(negative)
                 : oracle::number(t.want, negative, x, {.stochastic = stochastic});
    const std::string signed_text = (negative ? "-" : "+") + text;
    const std::string wrong = judge::disagreement(
        t.want, want, {.stochastic = stochastic},
        [&](const Modes& modes) { return from_text(t.ours, signed_text, modes).value(); });
    if (!wrong.empty()) return fmt::format("{} {}: {}", t.name, signed_text, wrong);
  }
  return {};
}

/// significand * 2^quantum in hexadecimal, exactly, with the point after the first digit.
std::string exact_hex(const oracle::Integer& significand, int quantum) {
  const std::string digits = significand.str(0, std::ios_base::hex);
  const auto after_point = static_cast<int>(digits.size()) - 1;
  return fmt::format("0x{}.{}p{}", digits.substr(0, 1), digits.substr(1),
                     quantum + 4 * after_point);
}

/// The tie between an encoding and the next one.
oracle::Dyadic tie_above(const oracle::Layout& f, std::uint64_t code) {
  const oracle::Dyadic m = oracle::magnitude(f, code);
  return {2 * m.significand + 1, m.quantum - 1};
}

TEST_CASE("decimals at, above and below every tie of binary16", "[number][text]") {
  const oracle::Layout& f = oracle::layout("binary16");
  std::string wrong;
  int wrong_by_way_of_binary64 = 0;
  for (std::uint64_t code = 0; code <= f.last(); ++code) {
    const oracle::Dyadic tie = tie_above(f, code);
    const Decimal exact = text_judge::exact_decimal(tie.significand, tie.quantum);
    const int digits = 12 + static_cast<int>(code % 400);
    const std::uint64_t even = code % 2 == 0 ? code : code + 1;
    const auto check = [&](const Decimal& x, std::uint64_t want) {
      const std::string text = x.text();
      wrong_by_way_of_binary64 += by_way_of_binary64(kBinary16, text) != want;
      const std::uint64_t found = from_text(kBinary16, text).value().bits;
      if (found != want && wrong.empty()) {
        wrong = fmt::format("{}: found {:#x}, expected {:#x}", text, found, want);
      }
    };
    check(exact, even);
    check(text_judge::nudged(exact, digits, 1), code + 1);
    check(text_judge::nudged(exact, digits, -1), code);
  }
  REQUIRE(wrong.empty());
  // The exact ties come out right either way, as does one side of each; the other side is wrong
  // wherever the tail is lost in binary64, which 12 digits or more after the tie bring about.
  REQUIRE(wrong_by_way_of_binary64 > 30'000);
}

TEST_CASE("decimals beside ties and stochastic thresholds of every format, in all modes",
          "[number][text][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    const std::vector<std::uint64_t> all = text_judge::encodings(t.ours);
    const std::uint64_t step = all.size() / 40 + 1;
    const std::string wrong = judge::first_wrong_of(all.size() / step, [&](std::uint64_t i) {
      const oracle::Dyadic m = oracle::magnitude(t.want, all[i * step + i % step]);
      const int digits = 3 + static_cast<int>(i * 7 % 300);
      // In units of 2^-32 of the last place: the value, the tie, a threshold in between.
      for (const std::uint64_t part : {std::uint64_t{0}, std::uint64_t{1} << 31,
                                       (i * 0x9E3779B97F4A7C15) >> 32, std::uint64_t{1}}) {
        const oracle::Integer significand = (oracle::Integer(m.significand) << 32) + part;
        const Decimal exact = text_judge::exact_decimal(significand, m.quantum - 32);
        for (const Decimal& x :
             {exact, text_judge::nudged(exact, digits, 1), text_judge::nudged(exact, digits, -1)}) {
          const std::string bad = judged(t, x.text());
          if (!bad.empty()) return bad;
        }
      }
      return std::string();
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("the same in hexadecimal, with hundreds of digits", "[number][text][oracle]") {
  for (const judge::Target& t : judge::arithmetic_formats()) {
    const std::vector<std::uint64_t> all = text_judge::encodings(t.ours);
    const std::uint64_t step = all.size() / 120 + 1;
    const std::string wrong = judge::first_wrong_of(all.size() / step, [&](std::uint64_t i) {
      const oracle::Dyadic m = oracle::magnitude(t.want, all[i * step + i % step]);
      const int tail = 33 + static_cast<int>(i * 11 % 1200);
      for (const std::uint64_t part : {std::uint64_t{0}, std::uint64_t{1} << 31,
                                       (i * 0x9E3779B97F4A7C15) >> 32, std::uint64_t{1}}) {
        const oracle::Integer exact = ((oracle::Integer(m.significand) << 32) + part)
                                      << (tail - 32);
        for (const int by : {0, 1, -1}) {
          const std::string bad = judged(t, exact_hex(exact + by, m.quantum - tail));
          if (!bad.empty()) return bad;
        }
      }
      return std::string();
    });
    REQUIRE(wrong == "");
  }
}

TEST_CASE("every shape of a number", "[number][text][oracle]") {
  std::istringstream texts(
      "0 0.0 000 .0 0. 0e99 0x0p0 0x.0p-9 1 1. 01 0001.5000 .5 5.e-1 1e0 1E5 1e+4 1e-4 "
      "12.75e-1 65504 65519.99999999999999999999999999999999999999999 65520 65535.9 65536 "
      "1e5 1e39 1e60 1e61 1e400 1e-8 2.98023223876953125e-8 2.98023223876953124e-8 "
      "2.98023223876953126e-8 1e-45 1e-99 1e-101 1e-400 "
      "3.4028235677973366163753939545814e38 3.4028235677973366163753939545815e38 "
      "7.006492321624085354618e-46 448 464 465 28 30 7.5 7.75 8 6 7 0.1 "
      "0.3333333333333333333333333333333333333 0x1 0X1.8P3 0x.8 0xAbC.dEfp-12 0x8.p1 "
      "0x1p-24 0x1p-25 0x1.8p-149 0x1p127 0x1p128 0x1p1024 "
      "0x00000000000000000000000000000000000000000001.8p1 ");
  const std::vector<std::string> all(std::istream_iterator<std::string>(texts), {});
  for (const judge::Target& t : judge::arithmetic_formats()) {
    for (const std::string& text : all) {
      std::string lower = text;  // which is all the judge reads
      for (char& c : lower) c = static_cast<char>(std::tolower(c));
      const std::string wrong = judged(t, lower);
      REQUIRE(wrong == "");
      REQUIRE(from_text(t.ours, text)->bits == from_text(t.ours, lower)->bits);
    }
  }
}

TEST_CASE("exponents of any length", "[number][text]") {
  const std::string nines(40, '9');
  const auto read = [](const std::string& text) { return from_text(kBinary16, text).value(); };
  const Flags overflow = {.overflow = true, .inexact = true};
  const Flags underflow = {.underflow = true, .inexact = true};
  for (const std::string prefix : {"1e", "0x1p", "12345.678E+", "0xabc.defP+"}) {
    CHECK(read(prefix + nines).bits == 0x7C00);
    CHECK(read(prefix + nines).flags == overflow);
  }
  for (const std::string prefix : {"1e-", "0x1p-", "12345.678E-", "0xabc.defP-"}) {
    CHECK(read(prefix + nines).bits == 0);
    CHECK(read(prefix + nines).flags == underflow);
    CHECK(from_text(kBinary16, "-" + prefix + nines, {.rounding = Rounding::downward})->bits ==
          0x8001);
  }
  for (const std::string prefix : {"0e", "0.00E-", "0x0p", "0x.0p-"}) {
    CHECK(read(prefix + nines).bits == 0);
    CHECK(read(prefix + nines).flags == Flags{});
  }
}

TEST_CASE("a million digits", "[number][text]") {
  const std::string zeros(1'000'000, '0');
  const auto read = [](const std::string& text) { return from_text(kBinary16, text).value(); };
  CHECK(read("0." + zeros + "1e1000001").bits == 0x3C00);
  CHECK(read("1" + zeros + "e-1000000").bits == 0x3C00);
  CHECK(read(zeros + "1." + zeros).bits == 0x3C00);
  CHECK(read("0x0." + zeros + "1p4000004").bits == 0x3C00);
  CHECK(read("0x1" + zeros + "p-4000000").bits == 0x3C00);
  CHECK(read("1.00048828125" + zeros).bits == 0x3C00);
  CHECK(read("1.00048828125" + zeros + "1").bits == 0x3C01);
  CHECK(read("65519." + std::string(1'000'000, '9')).bits == 0x7BFF);
  CHECK(read("0x1.002" + zeros).bits == 0x3C00);
  CHECK(read("0x1.002" + zeros + "1").bits == 0x3C01);
  CHECK(read("1" + zeros).bits == 0x7C00);
  CHECK(read("0." + zeros + "1").bits == 0);
  CHECK(read("0." + zeros + "1").flags == Flags{.underflow = true, .inexact = true});
}

TEST_CASE("one bit far below a tie of binary32 decides", "[number][text]") {
  const oracle::Integer one = 1;
  std::string wrong;
  const auto check = [&](const oracle::Integer& tie, int quantum, std::uint64_t lower) {
    for (const int by : {1, -1}) {
      const std::string text = text_judge::exact_decimal(tie + by, quantum).text();
      const std::uint64_t want = by > 0 ? lower + 1 : lower;
      if (from_text(kBinary32, text)->bits != want) wrong = text;
    }
  };
  for (int k = 0; k < 100; ++k) {  // 2^126 and half an ulp of it, in units of 2^k
    check((one << (126 - k)) + (one << (102 - k)), k, 0x7E800000);
  }
  for (int k = 25; k <= 182; ++k) check((one << k) + (one << (k - 24)), -k, 0x3F800000);
  for (int k = 151; k <= 182; ++k) check(one << (k - 150), -k, 0);
  REQUIRE(wrong == "");
}

TEST_CASE("infinities and NaNs", "[number][text][table]") {
  struct Row {
    const char* text;
    Format f;
    std::uint64_t bits;
    bool invalid;
  };
  const Row rows[] = {
      {"inf", kBinary16, 0x7C00, false},        {"-Infinity", kBinary16, 0xFC00, false},
      {"+INF", kBinary32, 0x7F800000, false},   {"inf", kFloat8E4M3, 0x7F, false},
      {"-inf", kFloat4E2M1, 0xF, false},        {"nan", kBinary16, 0x7E00, false},
      {"-NaN", kBinary16, 0xFE00, false},       {"nan(0x0)", kBinary16, 0x7E00, false},
      {"nan(0x1FF)", kBinary16, 0x7FFF, false}, {"-snan(0x1ff)", kBinary16, 0xFDFF, false},
      {"snan", kBinary16, 0x7C01, false},       {"snan(0x001)", kBinary16, 0x7C01, false},
      {"nan", kFloat8E5M2, 0x7E, false},        {"nan(0x1)", kFloat8E5M2, 0x7F, false},
      {"-nan", kFloat8E4M3, 0xFF, false},       {"nan", kFloat6E3M2, 0x1F, true},
      {"-nan", kFloat4E2M1, 0x7, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text, row.bits);
    const auto number = from_text(row.f, row.text);
    REQUIRE(number);
    CHECK(number->bits == row.bits);
    CHECK(number->flags == Flags{.invalid = row.invalid});
  }
  CHECK(from_text(kBinary16, "inf", {.saturate = true})->bits == 0x7BFF);
}

TEST_CASE("what is not a number", "[number][text]") {
  const char* const texts[] = {"",
                               " ",
                               "+",
                               "-",
                               ".",
                               "-.",
                               "e5",
                               ".e5",
                               "1e",
                               "1e+",
                               "1e-",
                               "1e5.0",
                               "1ee5",
                               "1.2.3",
                               "..1",
                               " 1",
                               "1 ",
                               "\t1",
                               "1\n",
                               "+-1",
                               "--1",
                               "- 1",
                               "1_000",
                               "1'000",
                               "1,5",
                               "1.5f",
                               "1.5h",
                               "0x",
                               "0x.",
                               "0xp1",
                               "0x1p",
                               "0x1p+",
                               "0x1p0x1",
                               "0x1.g",
                               "1p5",
                               "x1",
                               "0b1",
                               "0x1e+5",
                               "abc",
                               "i",
                               "in",
                               "infin",
                               "infinityy",
                               "inf.",
                               "na",
                               "nan(",
                               "nan()",
                               "nan(0x",
                               "nan(0x)",
                               "nan(1)",
                               "nan(0x1",
                               "nan(0x1))",
                               "nan(0x200)",
                               "nan(0x10000000000000001)",
                               "snan(0x0)",
                               "snan(0x200)",
                               "nan1",
                               "1nan",
                               "\xEF\xBC\x91",
                               "\xE2\x88\x92"
                               "1"};
  for (const char* const text : texts) {
    CAPTURE(text);
    CHECK_FALSE(from_text(kBinary16, text));
  }
  CHECK_FALSE(from_text(kBinary16, std::string_view("1\0", 2)));
  CHECK_FALSE(from_text(kFloat8E4M3, "snan"));
  CHECK_FALSE(from_text(kFloat8E4M3, "nan(0x1)"));
  CHECK_FALSE(from_text(kFloat6E3M2, "snan"));
  CHECK_THROWS_AS(from_text(kBinary64, "1"), std::invalid_argument);
}

// Reading is a constant expression.
static_assert(from_text(kBinary16, "0.1")->bits == 0x2E66);
static_assert(from_text(kBinary32, "0.1")->bits == 0x3DCCCCCD);
static_assert(from_text(kBinary16, "0.1", {.rounding = Rounding::upward})->bits == 0x2E67);
static_assert(from_text(kBinary16, "1e-400")->flags.underflow);
static_assert(!from_text(kBinary16, "0.1f"));

}  // namespace test_from_text
