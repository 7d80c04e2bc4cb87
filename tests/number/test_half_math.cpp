// SPDX-License-Identifier: Apache-2.0
// <cmath>'s functions against the C library's, in formats where that one is exact or rounds once.
#include "halfscope/number/half_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "number/samples.hpp"

namespace test_half_math {

using namespace halfscope;

half from(std::uint32_t bits) { return half::from_bits(static_cast<std::uint16_t>(bits)); }

bool same(half a, half b) { return a.bits() == b.bits() || (isnan(a) && isnan(b)); }
bool same(half a, float b) { return same(a, half(b)); }
bool same(binary32 a, float b) {
  return a.bits() == std::bit_cast<std::uint32_t>(b) || (isnan(a) && std::isnan(b));
}

std::vector<half> structured() {
  std::vector<half> out;
  for (std::uint64_t field = 0; field < 32; ++field) {
    for (const std::uint64_t fraction : samples::fractions(kBinary16)) {
      out.push_back(from(static_cast<std::uint32_t>(field << 10 | fraction)));
      out.push_back(-out.back());
    }
  }
  return out;
}

/// As generic code calls them.
template <typename T>
T length(T x, T y) {
  using std::abs;
  using std::max;
  using std::sqrt;
  return max(abs(x), sqrt(x * x + y * y));
}

TEST_CASE("functions of one half", "[number][half]") {
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const half h = from(bits);
    const auto x = static_cast<float>(h);
    const bool integral = same(floor(h), std::floor(x)) && same(ceil(h), std::ceil(x)) &&
                          same(trunc(h), std::trunc(x)) && same(round(h), std::round(x)) &&
                          same(rint(h), std::rint(x));
    const bool computed = same(sqrt(h), std::sqrt(x)) && same(logb(h), std::logb(x));
    const bool classes = isnan(h) == std::isnan(x) && isinf(h) == std::isinf(x) &&
                         isfinite(h) == std::isfinite(x) && signbit(h) == std::signbit(x) &&
                         isnormal(h) == (std::isfinite(x) && std::abs(x) >= 0x1p-14F);
    const bool sign = abs(h).bits() == (bits & 0x7FFF) && fabs(h).bits() == (bits & 0x7FFF);
    if (!integral || !computed || !classes || !sign) wrong = bits;
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("functions of two halves", "[number][half]") {
  const std::vector<half> all = structured();
  std::uint32_t wrong = 0;
  for (const half a : all) {
    for (const half b : all) {
      const auto x = static_cast<float>(a);
      const auto y = static_cast<float>(b);
      bool right = same(remainder(a, b), std::remainder(x, y)) && same(fmod(a, b), std::fmod(x, y));
      right = right && copysign(a, b).bits() == ((a.bits() & 0x7FFF) | (b.bits() & 0x8000));
      if (!isnan(a) && !isnan(b)) {
        right = right && same(min(a, b), std::min(x, y)) && same(max(a, b), std::max(x, y));
      }
      const bool zeros = x == 0 && y == 0;  // of which the C library's fmin may give either
      if (!zeros)
        right = right && same(fmin(a, b), std::fmin(x, y)) && same(fmax(a, b), std::fmax(x, y));
      if (!right) wrong = static_cast<std::uint32_t>(a.bits() << 16 | b.bits());
    }
  }
  REQUIRE(wrong == 0);
  CHECK(fmin(half(0), -half(0)).bits() == 0x8000);
  CHECK(fmax(-half(0), half(0)).bits() == 0);
}

TEST_CASE("binary32's functions are float's", "[number][half]") {
  std::vector<float> values = {0.0F, -0.0F, INFINITY, -INFINITY, NAN};
  for (const std::uint64_t fraction : samples::fractions(kBinary32)) {
    for (std::uint64_t field = 0; field < 255; field += field % 3 == 0 ? 19 : 15) {
      values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(field << 23 | fraction)));
      values.push_back(-values.back());
    }
  }
  std::uint32_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float x = values[i];
    const binary32 a(x);
    bool right = same(sqrt(a), std::sqrt(x)) && same(rint(a), std::rint(x));
    for (const int n : {-300, -150, -20, -1, 0, 1, 20, 150, 300}) {
      right = right && same(ldexp(a, n), std::ldexp(x, n));
    }
    for (std::size_t j = i % 5; j < values.size(); j += 5) {
      const float y = values[j];
      const float z = values[(i * 31 + j) % values.size()];
      const binary32 b(y);
      right = right && same(fma(a, b, binary32(z)), std::fma(x, y, z)) &&
              same(nextafter(a, b), std::nextafter(x, y)) && same(fmod(a, b), std::fmod(x, y));
    }
    if (!right) wrong = a.bits();
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("fma rounds once", "[number][half][table]") {
  // Through binary32 this is C1BE.
  CHECK(fma(from(0x39C0), from(0xC3FE), from(0x07FE)).bits() == 0xC1BF);
  CHECK(fma(from(0x3C03), from(0x3C03), -half(1)).bits() == 0x1E02);
  CHECK((from(0x3C03) * from(0x3C03) - half(1)).bits() == 0x1E00);
}

TEST_CASE("neighbours", "[number][half][table]") {
  const half infinity = std::numeric_limits<half>::infinity();
  CHECK(nextafter(half(1), infinity).bits() == 0x3C01);
  CHECK(nextafter(half(1), half(0)).bits() == 0x3BFF);
  CHECK(nextafter(half(0), -infinity).bits() == 0x8001);
  CHECK(nextafter(from(0x7BFF), infinity) == infinity);
  CHECK(nextafter(half(0), from(0x8000)).bits() == 0x8000);
  CHECK(isnan(nextafter(half(1), from(0x7E00))));
}

TEST_CASE("generic code finds them", "[number][half]") {
  CHECK(length(half(3), half(4)) == half(5));
  CHECK(length(3.0F, 4.0F) == 5.0F);
  CHECK(length(bfloat16(-3), bfloat16(4)) == bfloat16(5));
}

TEST_CASE("exponentials and logarithms of half, rounded from exact values",
          "[number][half][table]") {
  CHECK(exp(half(1)).bits() == 0x4170);     // 2.718281828: 2.71875 is 0.24 of a unit away
  CHECK(exp2(half(-24)).bits() == 0x0001);  // the smallest subnormal
  CHECK(log(half(2)).bits() == 0x398C);     // 0.693147181 * 2048 = 1419.6
  CHECK(log2(half(8)) == half(3));
  CHECK(log10(half(1000)) == half(3));
  CHECK(isinf(exp(half(12))));
  CHECK(isnan(log(half(-1))));
  CHECK(log(half(0)) == -std::numeric_limits<half>::infinity());
}

TEST_CASE("the encodings of an array of numbers, where it stands", "[number][half]") {
  std::vector<half> values = {half(1), half(-2)};
  const std::span<std::uint16_t> bits = bits_of(values);
  REQUIRE(bits.size() == 2);
  CHECK((bits[0] == 0x3C00 && bits[1] == 0xC000));
  bits[1] = 0x4000;
  CHECK(values[1] == half(2));
  const std::vector<float8_e4m3> narrow = {float8_e4m3(448)};
  const std::span<const std::uint8_t> codes = bits_of(narrow);
  CHECK(codes[0] == 0x7E);
}

TEST_CASE("formats without NaN: the largest number stands for it", "[number][half]") {
  const float4_e2m1 six(6);
  CHECK(sqrt(float4_e2m1(-1)) == six);
  CHECK_FALSE(isnan(six));
  CHECK_FALSE(isinf(six));
  CHECK(isfinite(six));
}

// All are constant expressions.
static_assert(sqrt(half(2)) == 1.4142135623730950488016887242096980785696718753769_h);
static_assert(fmod(half(-5.5), half(2)) == half(-1.5) && remainder(half(7), half(4)) == half(-1));
static_assert(isnan(fma(half(0), std::numeric_limits<half>::infinity(), half(1))));

}  // namespace test_half_math
