// SPDX-License-Identifier: Apache-2.0
#include "halfscope/number/block.hpp"

#include <fmt/format.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "block_judge.hpp"
#include "catch.hpp"

namespace test_block {

using namespace halfscope;

using Codes = std::vector<std::uint8_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kQuietNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t bits_of(float x) { return detail::bit_cast<std::uint32_t>(x); }
float from_bits(std::uint32_t bits) { return detail::bit_cast<float>(bits); }
Format format_of(const block_judge::Element& e) { return find_format(e.name)->format; }

struct Rule {
  ScaleRule rule;
  int (*exponent)(const block_judge::Element&, const block_judge::Rational&);
};
constexpr Rule kRules[] = {
    {ScaleRule::floor, block_judge::floor_exponent},
    {ScaleRule::round_even, block_judge::round_even_exponent},
    {ScaleRule::round_up, block_judge::round_up_exponent},
};

/// What the judge makes of a block of finite values, as the library would tell
/// it.
struct Wanted {
  std::uint8_t scale = 0;
  Codes codes;
  Flags flags;
};

template <typename How>
Wanted wanted(const block_judge::Element& e, const Rule& rule, const std::vector<float>& values,
              How how_of_element) {
  block_judge::Rational largest = 0;
  for (const float v : values) {
    const block_judge::Rational magnitude(std::fabs(v));
    if (magnitude > largest) largest = magnitude;
  }
  Wanted out;
  const int k = largest == 0 ? -127 : rule.exponent(e, largest);
  out.scale = static_cast<std::uint8_t>(k + 127);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const block_judge::Rational x =
        block_judge::Rational(std::fabs(values[i])) / block_judge::power_of_two(k);
    const block_judge::Answer a =
        block_judge::element(e, x, std::signbit(values[i]), how_of_element(i));
    out.codes.push_back(static_cast<std::uint8_t>(a.code));
    out.flags |= {.overflow = a.overflow, .underflow = a.underflow, .inexact = a.inexact};
  }
  return out;
}

/// Empty when library and judge agree about a block.
template <typename How>
std::string disagreement(const block_judge::Element& e, const Rule& rule,
                         const std::vector<float>& values, const BlockOptions& options,
                         How how_of_element) {
  Codes codes(values.size(), 0xEE);
  BlockOptions with_rule = options;
  with_rule.rule = rule.rule;
  const BlockScale got =
      quantise_block(format_of(e), values.data(), values.size(), codes.data(), with_rule);
  const Wanted want = wanted(e, rule, values, how_of_element);
  const auto where = [&] {
    return fmt::format("{} rule {} first value {:#010x}", e.name, static_cast<int>(rule.rule),
                       bits_of(values[0]));
  };
  if (got.scale != want.scale) {
    return fmt::format("{}: scale {} want {}", where(), got.scale, want.scale);
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == want.codes[i]) continue;
    return fmt::format("{}: value {} {:#010x}: {:#x} want {:#x}", where(), i, bits_of(values[i]),
                       codes[i], want.codes[i]);
  }
  return got.flags == want.flags ? std::string() : where() + ": flags";
}

/// A block whose largest magnitude is `largest`, the rest below it by amounts
/// that hit numbers of the element format, ties between them, neighbours of
/// both, and both signs.
std::vector<float> block_under(const block_judge::Element& e, float largest, unsigned step) {
  std::vector<float> out = {largest};
  const int binade = std::ilogb(largest) - std::ilogb(block_judge::magnitude(e, e.last));
  for (unsigned code = step % 5; code <= e.last && out.size() + 4 <= kMxBlockSize;
       code += 1 + e.last / 7) {
    const double here = block_judge::magnitude(e, code);
    const double middle = code < e.last ? (here + block_judge::magnitude(e, code + 1)) / 2 : here;
    const auto tie = static_cast<float>(std::ldexp(middle, binade));
    for (const float v : {static_cast<float>(-std::ldexp(here, binade)), tie,
                          -std::nextafter(tie, 0.0f), std::nextafter(tie, kInf)}) {
      if (std::fabs(v) <= largest) out.push_back(v);
    }
  }
  return out;
}

/// Magnitudes of the binade 2^k at which a rule could change its mind.
std::vector<float> maxima(const block_judge::Element& e, int k) {
  const float low = std::ldexp(1.0f, k);
  const float top = std::nextafter(k == 127 ? kInf : std::ldexp(2.0f, k), 0.0f);
  const double p = std::ldexp(1.0, -e.fraction_bits);  // one ulp of the format, in [1, 2)
  const double last = block_judge::magnitude(e, e.last);
  const double last_fraction = last / std::ldexp(1.0, std::ilogb(last));
  std::vector<float> out;
  for (const double x : {1.0, 1.0 + p / 2, last_fraction, 2.0 - p, 2.0 - p / 2, 2.0 - p / 4}) {
    const auto edge = static_cast<float>(std::ldexp(x, k));
    for (const float v : {std::nextafter(edge, 0.0f), edge, std::nextafter(edge, kInf)}) {
      if (v >= low && v <= top) out.push_back(v);
    }
  }
  out.push_back(top);
  return out;
}

/// Binades of binary32: those beside the clamp of the scale and the largest,
/// and every n-th.
std::vector<int> binades(int n) {
  std::vector<int> out;
  for (int k = -149; k <= 127; ++k) {
    const bool edge = (k >= -128 && k <= -110) || k >= 126;
    if (k % n == 0 || k == -149 || (n < 30 && edge)) out.push_back(k);
  }
  return out;
}

template <typename How>
std::string sweep(const BlockOptions& options, int every, How how_of_element) {
  unsigned step = 0;
  for (const block_judge::Element& e : block_judge::kElements) {
    for (const int k : binades(every)) {
      for (const float largest : maxima(e, k)) {
        const std::vector<float> values = block_under(e, largest, step++);
        for (const Rule& rule : kRules) {
          const std::string bad = disagreement(e, rule, values, options, how_of_element);
          if (!bad.empty()) return bad;
        }
      }
    }
  }
  return {};
}

constexpr std::uint8_t scale_of_six() {
  const float values[] = {6.0f, -0.25f};
  std::uint8_t elements[2] = {};
  return quantise_block(kFloat4E2M1, values, 2, elements).scale;
}
static_assert(scale_of_six() == 127, "blocks are quantised in constant expressions, too");

TEST_CASE("E8M0 is 2^(b-127), and NaN", "[number][block][table]") {
  for (int b = 0; b < 255; ++b) {
    const auto scale = static_cast<std::uint8_t>(b);
    CHECK(e8m0_to_float(scale) == std::ldexp(1.0f, b - 127));
    CHECK(e8m0_exponent(scale) == b - 127);
    CHECK(e8m0_from_exponent(b - 127) == scale);
  }
  CHECK(std::isnan(e8m0_to_float(kE8M0Nan)));
  CHECK(e8m0_from_exponent(-128) == 0);
  CHECK(e8m0_from_exponent(-1000) == 0);
  CHECK(e8m0_from_exponent(128) == 254);
  CHECK(e8m0_from_exponent(1000) == 254);
}

TEST_CASE("blocks worked by hand", "[number][block][table]") {
  constexpr Flags kExact = {}, kInexact = {.inexact = true};
  constexpr Flags kClamped = {.overflow = true, .inexact = true};
  constexpr Flags kUnder = {.underflow = true, .inexact = true};
  constexpr ScaleRule kFloor = ScaleRule::floor, kEven = ScaleRule::round_even,
                      kUp = ScaleRule::round_up;
  const float signaling = from_bits(0x7F800001);
  struct Row {
    const char* what;
    Format element;
    ScaleRule rule;
    std::vector<float> values;
    int scale;
    Codes codes;
    Flags flags;
  };
  const Row rows[] = {
      {"the largest itself", kFloat4E2M1, kFloor, {6.0f, -6.0f, 0.5f}, 127, {7, 15, 1}, kExact},
      {"7.5 rounds past 6: clamped", kFloat4E2M1, kFloor, {7.5f, 1.0f}, 127, {7, 2}, kClamped},
      {"7 is the tie past 6: clamped", kFloat4E2M1, kFloor, {-7.0f}, 127, {15}, kClamped},
      {"under 7 rounds to 6", kFloat4E2M1, kFloor, {6.875f}, 127, {7}, kInexact},
      {"7 to even is 8: 3.5 of 2, the tie, is 4", kFloat4E2M1, kEven, {7.0f}, 128, {6}, kInexact},
      {"under 7 to even stays", kFloat4E2M1, kEven, {6.875f}, 127, {7}, kInexact},
      {"6 fits", kFloat4E2M1, kUp, {6.0f}, 127, {7}, kExact},
      {"above 6 does not: 3.0625 of 2", kFloat4E2M1, kUp, {6.125f}, 128, {5}, kInexact},
      {"448 fits", kFloat8E4M3, kUp, {448.0f}, 127, {0x7E}, kExact},
      {"449 does not: 224.5 of 2", kFloat8E4M3, kUp, {449.0f}, 128, {0x76}, kInexact},
      {"464 is the tie, 448 is even", kFloat8E4M3, kFloor, {464.0f}, 127, {0x7E}, kInexact},
      {"480 is beyond", kFloat8E4M3, kFloor, {480.0f}, 127, {0x7E}, kClamped},
      {"zeros keep their signs", kFloat8E5M2, kFloor, {0.0f, -0.0f}, 0, {0, 0x80}, kExact},
      {"no values at all", kFloat6E3M2, kUp, {}, 0, {}, kExact},
      {"scale clamped below: 2^-149 / 2^-127", kFloat8E4M3, kFloor, {0x1p-149f}, 0, {0}, kUnder},
      {"scale clamped below: 2^-127", kFloat8E5M2, kFloor, {-0x1p-127f}, 0, {0xBC}, kExact},
      {"the least that escapes the clamp", kFloat6E2M3, kFloor, {0x1p-124f}, 1, {0x18}, kExact},
      {"largest binary32", kFloat8E4M3, kFloor, {FLT_MAX, 0x1p119f}, 246, {0x7E, 0x38}, kClamped},
      {"largest binary32", kFloat8E4M3, kUp, {-FLT_MAX}, 247, {0xF8}, kInexact},
      {"a subnormal beside", kFloat4E2M1, kFloor, {4.0f, 0x1p-149f}, 127, {6, 0}, kUnder},
      {"infinity", kFloat8E4M3, kFloor, {1.0f, kInf}, 255, {0x7F, 0x7F}, kExact},
      {"infinity, though E5M2 has one", kFloat8E5M2, kUp, {-kInf}, 255, {0x7E}, kExact},
      {"quiet NaN", kFloat8E5M2, kFloor, {kQuietNan, 2.0f}, 255, {0x7E, 0x7E}, kExact},
      {"signaling NaN", kFloat4E2M1, kEven, {2.0f, signaling}, 255, {0, 0}, {.invalid = true}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what, static_cast<int>(row.rule));
    Codes codes(row.values.size(), 0xEE);
    const BlockScale got = quantise_block(row.element, row.values.data(), row.values.size(),
                                          codes.data(), {.rule = row.rule});
    CHECK(static_cast<int>(got.scale) == row.scale);
    CHECK(codes == row.codes);
    CHECK((got.flags == row.flags));
  }
}

TEST_CASE("blocks are the MX definition in rationals", "[number][block][oracle]") {
  REQUIRE(sweep({}, 13, [](std::size_t) { return block_judge::How{}; }) == "");
}

TEST_CASE("round_up is what NVIDIA's recipe computes in binary32", "[number][block]") {
  // A / largest, by division or by the rounded reciprocal, and the next power of two from there on.
  std::string bad;
  for (const block_judge::Element& e : block_judge::kElements) {
    const auto largest = static_cast<float>(block_judge::magnitude(e, e.last));
    const float reciprocal = 1.0f / largest;
    for (int k = -100; k <= 127; ++k) {
      for (const float a : maxima(e, k)) {
        const Unpacked x = unpack(kBinary32, bits_of(a));
        const int exact = e8m0_exponent(block_scale(format_of(e), x, ScaleRule::round_up));
        for (const float quotient : {a / largest, a * reciprocal}) {
          int exponent = 0;
          const float significand = std::frexp(quotient, &exponent);  // in [1/2, 1)
          if ((significand == 0.5f ? exponent - 1 : exponent) == exact) continue;
          bad = fmt::format("{} {:a}: {}", e.name, a, exact);
        }
      }
    }
  }
  REQUIRE(bad == "");
}

TEST_CASE("elements round in every direction", "[number][block][oracle]") {
  struct Row {
    Rounding rounding;
    block_judge::Direction direction;
  };
  using block_judge::Direction;
  const Row rows[] = {
      {Rounding::ties_to_away, Direction::ties_to_away},
      {Rounding::toward_zero, Direction::toward_zero},
      {Rounding::upward, Direction::upward},
      {Rounding::downward, Direction::downward},
  };
  for (const Row& row : rows) {
    const BlockOptions options = {.modes = {.rounding = row.rounding}};
    const auto how = [&](std::size_t) { return block_judge::How{row.direction, 0}; };
    REQUIRE(sweep(options, 60, how) == "");
  }
}

TEST_CASE("stochastic: element i draws from (seed, first_index + i)", "[number][block][oracle]") {
  BlockOptions options = {.seed = 7, .first_index = 1000};
  options.modes.rounding = Rounding::stochastic;
  for (const int r : {32, 9}) {
    options.modes.random_bits = r;
    const auto how = [&](std::size_t i) {
      const std::uint32_t word = random_word(7, 1000 + i) >> (32 - r);
      return block_judge::How{block_judge::Direction::stochastic,
                              block_judge::Rational(word) / block_judge::power_of_two(r)};
    };
    REQUIRE(sweep(options, 60, how) == "");
  }
}

TEST_CASE("a scale beyond E8M0 is clamped", "[number][block]") {
  const Unpacked large = {Kind::finite, false, 3, 300}, small = {Kind::finite, false, 3, -300};
  for (const Rule& rule : kRules) {
    CHECK(block_scale(kFloat4E2M1, large, rule.rule) == 254);
    CHECK(block_scale(kFloat8E5M2, small, rule.rule) == 0);
  }
}

TEST_CASE("every element at every scale is X * P", "[number][block][oracle]") {
  std::string bad;
  for (const block_judge::Element& e : block_judge::kElements) {
    const Format f = format_of(e);
    for (int b = 0; b < 255 && bad.empty(); ++b) {
      for (unsigned code = 0; code < 2 * e.sign() && bad.empty(); ++code) {
        const unsigned magnitude = code & (e.sign() - 1);
        if (magnitude > e.last) continue;
        const double exact =
            std::ldexp(block_judge::magnitude(e, magnitude), b - 127) * (code < e.sign() ? 1 : -1);
        const bool beyond = std::fabs(exact) > FLT_MAX;  // both of at most 4 bits of precision
        const float want = beyond ? std::copysign(kInf, static_cast<float>(exact > 0 ? 1 : -1))
                                  : static_cast<float>(exact);
        const Rounded got =
            dequantise_element(f, static_cast<std::uint8_t>(b), static_cast<std::uint8_t>(code));
        if (got.bits == bits_of(want) &&
            got.flags == Flags{.overflow = beyond, .inexact = beyond}) {
          continue;
        }
        bad = fmt::format("{} scale {} code {:#x}: {:#x} want {:#x}", e.name, b, code, got.bits,
                          bits_of(want));
      }
    }
  }
  REQUIRE(bad == "");
}

TEST_CASE("NaN and infinity come back", "[number][block][table]") {
  const auto bits = [](Format f, std::uint8_t scale, std::uint8_t code, const Modes& modes = {}) {
    return dequantise_element(f, scale, code, modes).bits;
  };
  CHECK(bits(kFloat4E2M1, kE8M0Nan, 0) == 0x7FC00000);
  CHECK(bits(kFloat4E2M1, kE8M0Nan, 9, {.nan = NanPolicy::canonical}) == 0x7FC00000);
  CHECK(bits(kFloat4E2M1, kE8M0Nan, 9, {.nan = NanPolicy::cuda}) == 0x7FFFFFFF);
  CHECK(bits(kFloat8E4M3, 127, 0xFF) == 0xFFC00000);
  CHECK(bits(kFloat8E5M2, 0, 0x7C) == 0x7F800000);
  CHECK(bits(kFloat8E5M2, 0, 0xFC, {.saturate = true}) == 0xFF7FFFFF);
  CHECK(dequantise_element(kFloat8E5M2, 127, 0x7D).flags == Flags{.invalid = true});
}

TEST_CASE("what a block can hold comes back unchanged", "[number][block][exhaustive]") {
  std::string bad;
  for (const block_judge::Element& e : block_judge::kElements) {
    const Format f = format_of(e);
    // Scales at which every product is a binary32 number.
    for (int b = 0; b < 255 - std::ilogb(block_judge::magnitude(e, e.last)); ++b) {
      for (unsigned first = 0; first <= e.last; ++first) {
        const Codes codes = {static_cast<std::uint8_t>(e.last), static_cast<std::uint8_t>(first),
                             static_cast<std::uint8_t>(e.sign() | first)};
        const Codes scale = {static_cast<std::uint8_t>(b)};
        std::vector<float> values(3);
        Flags flags = dequantise_blocks(f, codes, scale, values);
        Codes again(3), scale_again(1);
        for (const Rule& rule : kRules) {
          flags |= quantise_blocks(f, std::span<const float>(values), again, scale_again,
                                   {.rule = rule.rule});
          if (again == codes && scale_again == scale && flags == Flags{}) continue;
          bad = fmt::format("{} scale {} code {:#x}", e.name, b, first);
        }
      }
    }
  }
  REQUIRE(bad == "");
}

}  // namespace test_block
