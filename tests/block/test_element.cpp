// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/element.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "block/block_oracle.hpp"
#include "catch.hpp"

namespace test_element {

using namespace halfscope::block;
using block_oracle::Q;

struct Row {
  Element element;
  block_oracle::Element oracle;
};
const std::vector<Row> kRows = {{Element::e2m1, block_oracle::kE2M1},
                                {Element::e2m3, block_oracle::kE2M3},
                                {Element::e3m2, block_oracle::kE3M2},
                                {Element::e4m3, block_oracle::kE4M3},
                                {Element::e5m2, block_oracle::kE5M2}};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

int code_of(Element element, float x, ElementRounding rounding, bool saturate = true) {
  return encode(element, x, {.rounding = rounding, .saturate = saturate});
}

TEST_CASE("every code of every element has the value of its definition", "[block]") {
  for (const Row& row : kRows) {
    CAPTURE(name_of(row.element));
    const int sign = 1 << (width_of(row.element) - 1);
    CHECK(Q(largest_of(row.element)) == largest(row.oracle));
    for (int code = 0; code < row.oracle.numbers; ++code) {
      const float value = decode(row.element, static_cast<std::uint8_t>(code));
      CHECK(Q(value) == block_oracle::value(row.oracle, code));
      CHECK(decode(row.element, static_cast<std::uint8_t>(code | sign)) == -value);
    }
  }
}

TEST_CASE("an element rounds at each middle and beside it", "[block]") {
  for (const Row& row : kRows) {
    CAPTURE(name_of(row.element));
    for (int code = 0; code + 1 < row.oracle.numbers; ++code) {
      const Q sum =
          block_oracle::value(row.oracle, code) + block_oracle::value(row.oracle, code + 1);
      const float middle = block_oracle::fl(sum / 2);
      const int even = code % 2 == 0 ? code : code + 1;
      CHECK(code_of(row.element, middle, ElementRounding::ties_to_even) == even);
      CHECK(code_of(row.element, middle, ElementRounding::ties_to_away) == code + 1);
      CHECK(code_of(row.element, middle, ElementRounding::ties_to_zero) == code);
      for (const auto rounding : {ElementRounding::ties_to_even, ElementRounding::ties_to_away,
                                  ElementRounding::ties_to_zero}) {
        CHECK(code_of(row.element, std::nextafter(middle, 0.0F), rounding) == code);
        CHECK(code_of(row.element, std::nextafter(middle, kInf), rounding) == code + 1);
      }
    }
  }
}

TEST_CASE("values beyond the largest element", "[block]") {
  constexpr auto kEven = ElementRounding::ties_to_even;
  for (const float x : {kInf, 3e38F}) {
    CHECK(code_of(Element::e2m1, x, kEven) == 7);
    CHECK(code_of(Element::e4m3, -x, kEven) == 0xFE);
    CHECK(code_of(Element::e5m2, x, kEven) == 0x7B);
    CHECK(code_of(Element::e4m3, x, kEven, false) == 0x7F);
    CHECK(code_of(Element::e5m2, -x, kEven, false) == 0xFC);
    CHECK(code_of(Element::hifloat8, x, kEven) == 0x6E);
  }
  CHECK(code_of(Element::e2m1, kNan, kEven) == 0);
  CHECK(code_of(Element::e4m3, -kNan, kEven) == 0x7F);
  CHECK(code_of(Element::e5m2, kNan, kEven) == 0x7F);
  CHECK(code_of(Element::e2m1, -0.0F, kEven) == 8);
}

TEST_CASE("a value rounds up at random as often as its fraction says", "[block]") {
  // 1.25 is a quarter of the way from 1 to 2 ulp of E2M1: codes 2 (1) and 3 (1.5) at one half.
  int up = 0;
  constexpr int kTimes = 4096;
  for (int i = 0; i < kTimes; ++i) {
    const Encoding how = {.rounding = ElementRounding::random,
                          .random = static_cast<std::uint32_t>(i) << 20};
    const int code = encode(Element::e2m1, 1.125F, how);
    CHECK((code == 2 || code == 3));
    up += code == 3 ? 1 : 0;
    CHECK(encode(Element::e2m1, 1.5F, how) == 3);
    CHECK(encode(Element::e2m1, 7.0F, how) == 7);
  }
  CHECK(up == kTimes / 4);
}

/// A row of the table in arXiv 2409.16626: the exponents of a prefix, and its bits of fraction.
struct HiFloat8Row {
  int first, last, fraction_bits;
};

TEST_CASE("HiFloat8 has the numbers of its paper, and rounds half away from zero", "[block]") {
  std::vector<Q> numbers = {0};
  for (int m = 1; m <= 7; ++m) numbers.push_back(block_oracle::power_of_two(m - 23));
  for (int exponent = -15; exponent <= 15; ++exponent) {
    const int size = std::abs(exponent);
    const int bits = size >= 8 ? 1 : size >= 4 ? 2 : 3;
    for (int f = 0; f < 1 << bits; ++f) {
      const Q part = Q(f) * block_oracle::power_of_two(-bits);
      numbers.push_back((1 + part) * block_oracle::power_of_two(exponent));
    }
  }
  numbers.pop_back();  // 1.5 * 2^15 is infinity
  REQUIRE(numbers.size() == 127);
  std::vector<Q> decoded;
  for (int code = 0; code < 128; ++code) {
    if (code != 0x6F)
      decoded.push_back(Q(decode(Element::hifloat8, static_cast<std::uint8_t>(code))));
  }
  std::ranges::sort(decoded);
  CHECK(decoded == numbers);
  CHECK(std::isinf(decode(Element::hifloat8, 0x6F)));
  CHECK(std::isnan(decode(Element::hifloat8, 0x80)));
  for (std::size_t i = 1; i + 1 < numbers.size(); ++i) {
    const float low = block_oracle::fl(numbers[i]), high = block_oracle::fl(numbers[i + 1]);
    // The last place is that of the lower binade, so the middle is the tie.
    const float middle = block_oracle::fl((numbers[i] + numbers[i + 1]) / 2);
    CAPTURE(low, high);
    CHECK(decode(Element::hifloat8, encode(Element::hifloat8, middle)) == high);
    CHECK(decode(Element::hifloat8, encode(Element::hifloat8, std::nextafter(middle, 0.0F))) ==
          low);
    CHECK(decode(Element::hifloat8, encode(Element::hifloat8, -middle)) == -high);
  }
  CHECK(encode(Element::hifloat8, 0x1p-23F) == 1);
  CHECK(encode(Element::hifloat8, std::nextafter(0x1p-23F, 0.0F)) == 0);
  CHECK(encode(Element::hifloat8, -1e-30F) == 0);
  CHECK(encode(Element::hifloat8, 40960.0F, {.saturate = false}) == 0x6F);
  CHECK(encode(Element::hifloat8, std::nextafter(40960.0F, 0.0F), {.saturate = false}) == 0x6E);
}

}  // namespace test_element
