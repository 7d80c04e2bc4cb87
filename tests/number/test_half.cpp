// SPDX-License-Identifier: Apache-2.0
// The value type: conversions, operators, comparisons, literals, limits and hashing.
#include "halfscope/number/half.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "number/samples.hpp"
#include "oracle.hpp"

namespace test_half {

using namespace halfscope;

constexpr half from(std::uint16_t bits) { return half::from_bits(bits); }

/// Encodings of binary16 with every exponent and the fractions that rounding finds hard.
std::vector<half> structured() {
  std::vector<half> out;
  for (std::uint64_t field = 0; field < 32; ++field) {
    for (const std::uint64_t fraction : samples::fractions(kBinary16)) {
      const auto bits = static_cast<std::uint16_t>(field << 10 | fraction);
      out.push_back(from(bits));
      out.push_back(-from(bits));
    }
  }
  return out;
}

bool is_nan(half x) { return (x.bits() & 0x7FFF) > 0x7C00; }
bool same(half a, half b) { return a.bits() == b.bits() || (is_nan(a) && is_nan(b)); }

bool same(binary32 a, float b) {
  const auto bits = std::bit_cast<std::uint32_t>(b);
  const bool nans = std::isnan(static_cast<float>(a)) && std::isnan(b);
  return nans || a.bits() == bits;
}

TEMPLATE_TEST_CASE("holds its encoding and nothing else", "[number][half]", half, bfloat16, tf32,
                   binary32, float8_e4m3, float8_e5m2, float6_e3m2, float6_e2m3, float4_e2m1) {
  STATIC_REQUIRE(std::is_trivial_v<TestType>);
  STATIC_REQUIRE(std::is_standard_layout_v<TestType>);
  STATIC_REQUIRE(sizeof(TestType) == sizeof(typename TestType::Bits));
  STATIC_REQUIRE(std::is_unsigned_v<typename TestType::Bits>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<float, TestType>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<int, TestType>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<TestType, float>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<TestType, bool>);
  constexpr int kWidth = TestType::kFormat.width;
  STATIC_REQUIRE(sizeof(TestType) == (kWidth <= 8 ? 1 : kWidth <= 16 ? 2 : 4));
  std::uint64_t wrong = 0;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << std::min(kWidth, 19); ++bits) {
    const auto narrow = static_cast<typename TestType::Bits>(bits);
    if (TestType::from_bits(narrow).bits() != narrow) wrong = bits;
    if (std::bit_cast<TestType>(narrow).bits() != narrow) wrong = bits;
  }
  REQUIRE(wrong == 0);
}

static_assert(!std::is_constructible_v<half, long double>);
static_assert(!std::is_constructible_v<half, __int128>);  // it would be cut to 64 bits

TEST_CASE("bits above the width are dropped", "[number][half]") {
  CHECK(float4_e2m1::from_bits(0xFF).bits() == 0xF);
  CHECK(tf32::from_bits(0xFFFF'FFFF).bits() == 0x7'FFFF);
}

TEST_CASE("from other types with one rounding", "[number][half][table]") {
  CHECK(half(0.1F).bits() == 0x2E66);
  CHECK(half(0.1).bits() == 0x2E66);
  // By way of binary32 all of these would land on a tie first.
  CHECK(half(1.0 + 0x1p-11 + 0x1p-52).bits() == 0x3C01);
  CHECK(half(0x1000'8000'0000'0001).bits() == 0x7C00);
  CHECK(bfloat16(0x0101'0000'0000'0001).bits() == 0x5B81);
  CHECK(bfloat16(std::int64_t{-0x0101'0000'0000'0001}).bits() == 0xDB81);
  CHECK(bfloat16(0x0101'0000'0000'0000).bits() == 0x5B80);
  CHECK(half(tf32::from_bits(0x1FC01)).bits() == 0x3C01);
  CHECK(half(binary32(1.0 + 0x1p-11 + 0x1p-23)).bits() == 0x3C01);
  CHECK(float8_e4m3(half(449)).bits() == 0x7E);
  CHECK(half(2049).bits() == 0x6800);
  CHECK(half(2051).bits() == 0x6802);
  CHECK(half(-2051L).bits() == 0xE802);
  CHECK(half(65519).bits() == 0x7BFF);
  CHECK(half(65520U).bits() == 0x7C00);
  CHECK(half(std::int8_t{-128}).bits() == 0xD800);
  CHECK(half(std::uint8_t{255}).bits() == 0x5BF8);
  CHECK(half(std::numeric_limits<std::int64_t>::min()).bits() == 0xFC00);
  CHECK(binary32(std::numeric_limits<std::uint64_t>::max()).bits() == 0x5F800000);
  CHECK(binary32(std::numeric_limits<std::uint32_t>::max()).bits() == 0x4F800000);
  CHECK(binary32(std::numeric_limits<std::int32_t>::min()).bits() == 0xCF000000);
  CHECK(half(true).bits() == 0x3C00);
  CHECK(half('A') == half(65));
}

TEST_CASE("every half is a float and a double, and comes back", "[number][half]") {
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const half x = from(static_cast<std::uint16_t>(bits));
    const auto single = static_cast<float>(x);
    const auto twice = static_cast<double>(x);
    if (is_nan(x)) {
      if (!std::isnan(single) || !std::isnan(twice)) wrong = bits;
      continue;
    }
    if (half(single).bits() != bits || half(twice).bits() != bits || single != twice) wrong = bits;
    if (static_cast<bool>(x) != (single != 0)) wrong = bits;
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("to integers: toward zero, as a float of the same value", "[number][half]") {
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const half x = from(static_cast<std::uint16_t>(bits));
    const auto value = static_cast<float>(x);
    if (!std::isfinite(value)) continue;
    if (static_cast<int>(x) != static_cast<int>(value)) wrong = bits;
    if (static_cast<long>(x) != static_cast<long>(value)) wrong = bits;
    if (value > -1 && static_cast<unsigned>(x) != static_cast<unsigned>(value)) wrong = bits;
    if (value > -1 && static_cast<unsigned long>(x) != static_cast<unsigned long>(value)) {
      wrong = bits;
    }
    if (std::abs(value) < 128 && static_cast<std::int8_t>(x) != static_cast<std::int8_t>(value)) {
      wrong = bits;
    }
    if (value > -1 && value < 65536 &&
        static_cast<std::uint16_t>(x) != static_cast<std::uint16_t>(value)) {
      wrong = bits;
    }
  }
  REQUIRE(wrong == 0);
  CHECK(static_cast<int>(from(0x7C00)) == std::numeric_limits<int>::min());  // integer indefinite
  CHECK(static_cast<int>(from(0x7E00)) == std::numeric_limits<int>::min());
}

TEST_CASE("+ - * / round once", "[number][half]") {
  // In binary32, then to binary16, is right for these four: 24 >= 2 * 11 + 2.
  const std::vector<half> all = structured();
  std::uint32_t wrong = 0;
  for (const half a : all) {
    for (const half b : all) {
      const auto x = static_cast<float>(a);
      const auto y = static_cast<float>(b);
      const bool right = same(a + b, half(x + y)) && same(a - b, half(x - y)) &&
                         same(a * b, half(x * y)) && same(a / b, half(x / y));
      half sum = a, difference = a, product = a, quotient = a;
      sum += b;
      difference -= b;
      product *= b;
      quotient /= b;
      const bool assigned = same(sum, a + b) && same(difference, a - b) && same(product, a * b) &&
                            same(quotient, a / b);
      if (!right || !assigned) wrong = static_cast<std::uint32_t>(a.bits() << 16 | b.bits());
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("binary32 computes as float does", "[number][half]") {
  std::vector<float> values = {0.0F, -0.0F, INFINITY, -INFINITY, NAN};
  for (const std::uint64_t fraction : samples::fractions(kBinary32)) {
    for (std::uint64_t field = 0; field < 255; field += field % 3 == 0 ? 9 : 8) {
      const auto bits = static_cast<std::uint32_t>(field << 23 | fraction);
      values.push_back(std::bit_cast<float>(bits));
      values.push_back(-values.back());
    }
  }
  std::uint32_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i % 7; j < values.size(); j += 7) {
      const float x = values[i];
      const float y = values[j];
      const binary32 a(x);
      const binary32 b(y);
      const bool right =
          same(a + b, x + y) && same(a - b, x - y) && same(a * b, x * y) && same(a / b, x / y);
      const bool ordered = (a < b) == (x < y) && (a <= b) == (x <= y) && (a > b) == (x > y) &&
                           (a >= b) == (x >= y) && (a == b) == (x == y) && (a != b) == (x != y);
      if (!right || !ordered || (a <=> b) != (x <=> y)) wrong = a.bits();
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("comparisons are those of the values", "[number][half]") {
  const std::vector<half> all = structured();
  std::uint32_t wrong = 0;
  for (const half a : all) {
    for (const half b : all) {
      const auto x = static_cast<float>(a);
      const auto y = static_cast<float>(b);
      const bool right = (a == b) == (x == y) && (a != b) == (x != y) && (a < b) == (x < y) &&
                         (a <= b) == (x <= y) && (a > b) == (x > y) && (a >= b) == (x >= y) &&
                         (a <=> b) == (x <=> y);
      if (!right) wrong = static_cast<std::uint32_t>(a.bits() << 16 | b.bits());
    }
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("signs and steps of one", "[number][half]") {
  half x(2047);
  CHECK(++x == half(2048));
  CHECK(x++ == half(2048));
  CHECK(x == half(2048));  // 2049 is a tie: to the even 2048
  CHECK(--x == half(2047));
  CHECK(x-- == half(2047));
  CHECK(x == half(2046));
  CHECK((-half(0)).bits() == 0x8000);
  CHECK((-from(0x7E00)).bits() == 0xFE00);
  CHECK((+from(0x7D00)).bits() == 0x7D00);
}

TEST_CASE("literals are rounded once", "[number][half]") {
  STATIC_REQUIRE((1.5_h).bits() == 0x3E00);
  STATIC_REQUIRE((65'504_h).bits() == 0x7BFF);
  STATIC_REQUIRE((0x1.8p-24_h).bits() == 0x0002);
  STATIC_REQUIRE((0xFFp0_h).bits() == 0x5BF8);
  STATIC_REQUIRE((1e-9_h).bits() == 0);
  STATIC_REQUIRE((-2_h).bits() == 0xC000);
  STATIC_REQUIRE((0.1_bf16).bits() == 0x3DCD);
  // Next to a tie, by less than long double can hold.
  STATIC_REQUIRE((1.00048828125_h).bits() == 0x3C00);
  STATIC_REQUIRE((1.00048828125000000000000000000000000001_h).bits() == 0x3C01);
}

TEST_CASE("docs/half.md shows the example that is compiled", "[number][half]") {
  const auto read = [](const char* name) {
    std::ifstream in(std::string(HALFSCOPE_SOURCE_DIR "/docs/") + name);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string example = read("examples/half.cpp");
  const std::string code = example.substr(example.find('\n') + 1);  // without the licence line
  CHECK(code.size() > 500);
  CHECK(read("half.md").find("```cpp\n" + code + "```") != std::string::npos);
}

}  // namespace test_half
