// SPDX-License-Identifier: Apache-2.0
// MX blocks: by hand, by rationals at each tie of their elements, and back to values.
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "block/block_oracle.hpp"
#include "catch.hpp"
#include "halfscope/block/quantise.hpp"
#include "halfscope/number/random.hpp"

namespace test_mx {

using namespace halfscope::block;
using block_oracle::Q;

using Codes = std::vector<std::uint8_t>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct MxElement {
  std::string name;
  block_oracle::Element oracle;

  double magnitude(int code) const {
    return static_cast<double>(block_oracle::value(oracle, code));
  }
};
const std::vector<MxElement> kElements = {{"mxfp8-e4m3", block_oracle::kE4M3},
                                          {"mxfp8-e5m2", block_oracle::kE5M2},
                                          {"mxfp6-e2m3", block_oracle::kE2M3},
                                          {"mxfp6-e3m2", block_oracle::kE3M2},
                                          {"mxfp4", block_oracle::kE2M1}};

Quantised quantise_row(const std::string& recipe, const std::vector<float>& row) {
  return quantise(recipe_named(recipe), {row, 1, row.size()});
}

TEST_CASE("MX blocks worked by hand", "[block]") {
  struct Row {
    const char* what;
    const char* recipe;
    std::vector<float> values;
    std::uint32_t scale;
    Codes codes;
  };
  const Row rows[] = {
      {"the largest itself", "mxfp4-floor", {6, -6, 0.5F}, 127, {7, 15, 1}},
      {"7.5 rounds past 6", "mxfp4-floor", {7.5F, 1}, 127, {7, 2}},
      {"7 is the tie past 6", "mxfp4-floor", {-7}, 127, {15}},
      {"under 7 rounds to 6", "mxfp4-floor", {6.875F}, 127, {7}},
      {"7 to even is 8: 3.5 of 2, the tie, is 4", "mxfp4-even", {7}, 128, {6}},
      {"under 7 to even stays", "mxfp4-even", {6.875F}, 127, {7}},
      {"to even is 2^128, which has no scale", "mxfp4-even", {0x1.Fp127F, 1}, 255, {0, 0}},
      {"above 4 is up to 8: 3 of 2", "mxfp4-ceil", {6}, 128, {5}},
      {"4 is a power of two", "mxfp4-ceil", {4}, 127, {6}},
      {"6 fits", "mxfp4-rceil", {6}, 127, {7}},
      {"above 6 does not: 3.0625 of 2", "mxfp4-rceil", {6.125F}, 128, {5}},
      {"448 fits", "mxfp8-e4m3-rceil", {448}, 127, {0x7E}},
      {"449 does not: 224.5 of 2", "mxfp8-e4m3-rceil", {449}, 128, {0x76}},
      {"464 is the tie, 448 is even", "mxfp8-e4m3-floor", {464}, 127, {0x7E}},
      {"480 is beyond", "mxfp8-e4m3-floor", {480}, 127, {0x7E}},
      {"zeros keep their signs", "mxfp8-e5m2-floor", {0, -0.0F}, 0, {0, 0x80}},
      {"2^-149 / 2^-127", "mxfp8-e4m3-floor", {0x1p-149F}, 0, {0}},
      {"the least scale: 2^-127", "mxfp8-e5m2-floor", {-0x1p-127F}, 0, {0xBC}},
      {"above the least scale", "mxfp6-e2m3-floor", {0x1p-124F}, 1, {0x18}},
      {"largest binary32", "mxfp8-e4m3-floor", {FLT_MAX, 0x1p119F}, 246, {0x7E, 0x38}},
      {"largest binary32", "mxfp8-e4m3-rceil", {-FLT_MAX}, 247, {0xF8}},
      {"a subnormal beside", "mxfp4-floor", {4, 0x1p-149F}, 127, {6, 0}},
      {"infinity", "mxfp8-e4m3-floor", {1, kInf}, 255, {0x7F, 0x7F}},
      {"infinity, though E5M2 has one", "mxfp8-e5m2-rceil", {-kInf}, 255, {0x7F}},
      {"NaN", "mxfp8-e5m2-floor", {kNan, 2}, 255, {0x7F, 0x7F}},
      {"NaN in a format without it", "mxfp4-even", {2, kNan}, 255, {0, 0}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what, row.recipe);
    const Quantised got = quantise_row(row.recipe, row.values);
    CHECK(got.scales == std::vector<std::uint32_t>{row.scale});
    CHECK(got.codes == row.codes);
  }
  CHECK(quantise_row("mxfp4-floor", {}).scales.empty());
}

/// Returns 32 values: `largest`, then numbers of the element format below it, ties between them and
/// the neighbours of both, with both signs.
std::vector<float> block_under(const MxElement& e, float largest, int step) {
  std::vector<float> out = {largest};
  const int last = e.oracle.numbers - 1;
  const int binade = std::ilogb(largest) - std::ilogb(e.magnitude(last));
  for (int code = step % 5; code < last && out.size() + 4 <= 32; code += 1 + last / 7) {
    const double middle = (e.magnitude(code) + e.magnitude(code + 1)) / 2;
    const auto number = static_cast<float>(std::ldexp(e.magnitude(code), binade));
    const auto tie = static_cast<float>(std::ldexp(middle, binade));
    for (const float v : {-number, tie, -std::nextafter(tie, 0.0F), std::nextafter(tie, kInf)}) {
      if (std::fabs(v) <= largest) out.push_back(v);
    }
  }
  out.resize(32);
  return out;
}

TEST_CASE("MX blocks full of ties, by rationals, at every third binade", "[block]") {
  const std::pair<const char*, block_oracle::Rule> rules[] = {
      {"-floor", block_oracle::Rule::floor},
      {"-even", block_oracle::Rule::even},
      {"-ceil", block_oracle::Rule::ceil},
      {"-rceil", block_oracle::Rule::round_up}};
  int step = 0;
  for (const MxElement& e : kElements) {
    for (int k = -149; k <= 127; k += k < -112 || k > 120 ? 1 : 3) {
      const float low = std::ldexp(1.0F, k), high = std::ldexp(k == 127 ? 1.5F : 1.96875F, k);
      for (const float largest : {low, std::nextafter(low, kInf), high}) {
        const std::vector<float> values = block_under(e, largest, step++);
        for (const auto& [rule, oracle] : rules) {
          const Quantised got = quantise_row(e.name + rule, values);
          const auto want = block_oracle::mx(e.oracle, oracle, values);
          const bool same = got.scales[0] == want.scale &&
                            std::vector<int>(got.codes.begin(), got.codes.end()) == want.codes;
          CAPTURE(e.name, rule, largest, got.scales[0], want.scale);
          if (!same) CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("rceil is the least scale without saturation, where the quotient is normal", "[block]") {
  for (const MxElement& e : kElements) {
    const Q largest = block_oracle::largest(e.oracle);
    const auto limit = static_cast<float>(largest);
    for (int k = -100; k <= 118; ++k) {
      const float edge = std::ldexp(limit, k - 15);
      for (const float b : {std::nextafter(edge, 0.0F), edge, std::nextafter(edge, kInf)}) {
        const int scale = static_cast<int>(quantise_row(e.name + "-rceil", {b}).scales[0]) - 127;
        CAPTURE(e.name, b, scale);
        CHECK(Q(b) <= largest * block_oracle::power_of_two(scale));
        CHECK(Q(b) > largest * block_oracle::power_of_two(scale - 1));
      }
    }
  }
}

/// All codes of finite numbers of an element at all scales, one pair in each block of a column.
Quantised everything(const MxElement& e) {
  Quantised out;
  const auto sign =
      static_cast<std::uint8_t>(1U << (e.oracle.exponent_bits + e.oracle.fraction_bits));
  for (std::uint32_t scale = 0; scale < 255; ++scale) {
    for (int code = 0; code < e.oracle.numbers; ++code) {
      const auto bits = static_cast<std::uint8_t>(code);
      const auto last = static_cast<std::uint8_t>(e.oracle.numbers - 1);
      out.codes.insert(out.codes.end(), {last, bits, static_cast<std::uint8_t>(sign | bits)});
      out.scales.push_back(scale);
    }
  }
  out.scale_rows = out.scales.size();
  out.scale_columns = 1;
  return out;
}

TEST_CASE("every element at every scale is their product, and comes back", "[block]") {
  for (const MxElement& e : kElements) {
    CAPTURE(e.name);
    const Quantised all = everything(e);
    const std::vector<float> values =
        dequantise(recipe_named(e.name + "-floor"), all, all.scale_rows, 3);
    std::size_t wrong = 0, finite = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const int code =
          all.codes[i] & ((1 << (e.oracle.exponent_bits + e.oracle.fraction_bits)) - 1);
      const double exact = std::ldexp(e.magnitude(code), static_cast<int>(all.scales[i / 3]) - 127);
      const float want = exact > FLT_MAX ? kInf : static_cast<float>(exact);
      wrong += values[i] == (all.codes[i] == code ? want : -want) ? 0 : 1;
      if (i % 3 == 2 && std::isfinite(values[i - 2])) finite = i / 3 + 1;  // blocks
    }
    CHECK(wrong == 0);
    for (const char* const rule : {"-floor", "-even", "-rceil"}) {
      const Quantised again =
          quantise(recipe_named(e.name + rule), {{values.data(), 3 * finite}, finite, 3});
      CHECK(std::equal(again.codes.begin(), again.codes.end(), all.codes.begin()));
      CHECK(std::equal(again.scales.begin(), again.scales.end(), all.scales.begin()));
    }
  }
}

TEST_CASE("NaN, infinities and values beyond binary32 come back", "[block]") {
  const auto value = [](const char* recipe, std::uint32_t scale, std::uint8_t code) {
    const Quantised one = {{code}, {scale}, 1, 1, {}};
    return dequantise(recipe_named(recipe), one, 1, 1)[0];
  };
  CHECK(std::isnan(value("mxfp4-floor", 255, 0)));
  CHECK(std::isnan(value("mxfp8-e4m3-floor", 127, 0xFF)));
  CHECK(value("mxfp8-e5m2-floor", 0, 0x7C) == kInf);
  CHECK(value("mxfp8-e5m2-floor", 0, 0xFC) == -kInf);
  const auto back = [](const char* recipe) {
    return dequantise(recipe_named(recipe), quantise_row(recipe, {FLT_MAX}), 1, 1)[0];
  };
  CHECK(back("mxfp4-floor") == 0x1.8p127F);
  CHECK(back("mxfp4-rceil") == kInf);
  CHECK_THROWS_AS(dequantise(recipe_named("mxfp4-floor"), quantise_row("mxfp4-floor", {1}), 1, 2),
                  std::invalid_argument);
}

TEST_CASE("the value at an index draws that word of the seed, in both directions", "[block]") {
  constexpr std::size_t kRows = 48, kColumns = 80;
  std::vector<float> values(kRows * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(static_cast<float>(i * 7919 % 1009) - 504, static_cast<int>(i % 7));
  }
  const Recipe& recipe = recipe_named("nvfp4-stochastic");
  for (const bool by_columns : {false, true}) {
    std::vector<float> scaled;
    const Quantised got = quantise(recipe, {values, kRows, kColumns},
                                   {.by_columns = by_columns, .seed = 7, .scaled = &scaled});
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Q size = block_oracle::size_of(Q(scaled[i]));
      int code = 0;
      while (code < 7 && block_oracle::value(block_oracle::kE2M1, code + 1) <= size) ++code;
      if (code < 7) {
        const Q below = block_oracle::value(block_oracle::kE2M1, code);
        const Q gap = block_oracle::value(block_oracle::kE2M1, code + 1) - below;
        const Q threshold = Q(halfscope::random_word(7, i)) * block_oracle::power_of_two(-32);
        code += (size - below) / gap > threshold ? 1 : 0;
      }
      wrong += (got.codes[i] & 7) == code ? 0 : 1;
    }
    CHECK(wrong == 0);
  }
}

}  // namespace test_mx
