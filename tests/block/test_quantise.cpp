// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/quantise.hpp"

#include <cfenv>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "block/block_oracle.hpp"
#include "catch.hpp"
#include "vector_target.hpp"

namespace test_quantise {

using namespace halfscope::block;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Matrix matrix(const std::vector<float>& values, std::size_t columns) {
  return {values, values.size() / columns, columns};
}

/// Values of all binades with random fractions: rows of one binade, and rows of all.
std::vector<float> samples(std::size_t rows, std::size_t columns, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<float> out;
  for (std::size_t r = 0; r < rows; ++r) {
    const int base = static_cast<int>(random() % 240) - 126;
    for (std::size_t c = 0; c < columns; ++c) {
      const int spread =
          r % 3 == 0 ? static_cast<int>(random() % 30) : static_cast<int>(random() % 4);
      const float fraction = 1 + static_cast<float>(random() % (1 << 23)) * 0x1p-23F;
      const float value = std::ldexp(fraction, base - spread);
      out.push_back(random() % 2 == 0 ? value : -value);
    }
  }
  return out;
}

QuantiseOptions options_of(const Recipe& recipe) {
  QuantiseOptions out;
  if (recipe.second == SecondScale::history) out.history = 3.5F;
  return out;
}

bool same(const Quantised& a, const Quantised& b) {
  const auto bits = [](const std::vector<float>& x) {
    std::vector<std::uint32_t> out;
    for (const float v : x) out.push_back(steps::bits_of(v));
    return out;
  };
  return a.codes == b.codes && a.scales == b.scales && a.scale_rows == b.scale_rows &&
         a.scale_columns == b.scale_columns && bits(a.second) == bits(b.second);
}

TEST_CASE("vector code has the bits of scalar code, for any bits, size and direction", "[block]") {
  const std::string target = GENERATE(from_range(halfscope::targets()));
  const halfscope::OnTarget only(target);
  std::mt19937 random(7);
  for (const Recipe& recipe : recipes()) {
    CAPTURE(recipe.name, target);
    for (const std::size_t columns : {16U, 48U, 256U, 400U}) {
      const std::size_t rows = 32;
      std::vector<float> values = samples(rows, columns, 3);
      for (std::size_t i = 0; i < values.size(); i += 7)
        values[i] = steps::float_of(static_cast<std::uint32_t>(random()));
      for (const bool by_columns : {false, true}) {
        QuantiseOptions options = options_of(recipe);
        options.by_columns = by_columns;
        options.threads = columns == 400 ? 0 : 1;
        CHECK(same(quantise(recipe, matrix(values, columns), options),
                   quantise_scalar(recipe, matrix(values, columns), options)));
      }
    }
  }
}

TEST_CASE("sizes that are no multiple of a block", "[block]") {
  for (const Recipe& recipe : recipes()) {
    CAPTURE(recipe.name);
    if (recipe.multiple_of != 1) continue;
    for (const std::size_t columns : {1U, 15U, 17U, 33U, 129U, 0U}) {
      const std::vector<float> values = samples(columns == 0 ? 0 : 19, columns, 5);
      const Matrix in = {values, columns == 0 ? 0U : 19U, columns};
      const Quantised fast = quantise(recipe, in, options_of(recipe));
      CHECK(same(fast, quantise_scalar(recipe, in, options_of(recipe))));
      CHECK(fast.codes.size() == values.size());
    }
  }
}

TEST_CASE("NVFP4 by rationals", "[block]") {
  std::vector<float> values = samples(1, 16, 1);
  for (unsigned seed = 0; seed < 24; ++seed) {
    values = samples(4, 64, seed);
    float largest = block_oracle::largest_magnitude(values);
    if (seed % 4 == 0) values[5] = largest = largest * 1000;  // other blocks' scales are subnormal
    const Quantised found = quantise(*find_recipe("nvfp4"), matrix(values, 64));
    for (std::size_t block = 0; block < 16; ++block) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(block * 16);
      const auto wanted = block_oracle::nvfp4({first, first + 16}, largest);
      CHECK(found.scales[block] == wanted.scale);
      const auto codes = found.codes.begin() + static_cast<std::ptrdiff_t>(block * 16);
      CHECK(std::vector<int>(codes, codes + 16) == wanted.codes);
    }
  }
}

struct MxRow {
  const char* element;
  block_oracle::Element oracle;
};
struct RuleRow {
  const char* rule;
  block_oracle::Rule oracle;
};

TEST_CASE("MX by rationals, at every binade and beside each power of two and largest element",
          "[block]") {
  constexpr MxRow kElements[] = {{"mxfp8-e4m3", block_oracle::kE4M3},
                                 {"mxfp8-e5m2", block_oracle::kE5M2},
                                 {"mxfp6-e2m3", block_oracle::kE2M3},
                                 {"mxfp6-e3m2", block_oracle::kE3M2},
                                 {"mxfp4", block_oracle::kE2M1}};
  constexpr RuleRow kRules[] = {{"floor", block_oracle::Rule::floor},
                                {"even", block_oracle::Rule::even},
                                {"ceil", block_oracle::Rule::ceil},
                                {"rceil", block_oracle::Rule::round_up}};
  for (const MxRow& element : kElements) {
    for (const RuleRow& rule : kRules) {
      const Recipe& recipe = recipe_named(std::string(element.element) + "-" + rule.rule);
      CAPTURE(recipe.name);
      std::vector<float> values;
      const float largest = largest_of(recipe.element);
      for (int e = -149; e <= 118; ++e) {  // a block of two per threshold, padded with zeros
        for (const float at : {1.0F, 1.25F, 1.9375F, largest}) {
          const float x = std::ldexp(at, at == largest && e < 0 ? e + 10 : e);
          if (!std::isfinite(2 * x)) continue;
          for (const float b : {std::nextafter(x, 0.0F), x, std::nextafter(x, kInf)}) {
            std::vector<float> block(32);
            block[0] = -b;
            block[1] = b / 3;
            values.insert(values.end(), block.begin(), block.end());
          }
        }
      }
      const Quantised found = quantise(recipe, matrix(values, 32));
      bool equal = true;
      for (std::size_t i = 0; i < found.scales.size(); ++i) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(i * 32);
        const auto wanted = block_oracle::mx(element.oracle, rule.oracle, {first, first + 32});
        const auto codes = found.codes.begin() + static_cast<std::ptrdiff_t>(i * 32);
        const bool here =
            found.scales[i] == wanted.scale && std::vector<int>(codes, codes + 32) == wanted.codes;
        if (!here && equal) {
          CAPTURE(values[i * 32], found.scales[i], wanted.scale);
          CHECK(here);
        }
        equal = equal && here;
      }
      CHECK(equal);
    }
  }
}

TEST_CASE("FP8 blocks by rationals", "[block]") {
  struct Case {
    const char* name;
    block_oracle::Element element;
    bool power_of_two;
  };
  for (const Case& c : {Case{"fp8-1x128", block_oracle::kE4M3, true},
                        Case{"fp8-1x128-e5m2", block_oracle::kE5M2, true},
                        Case{"fp8-1x128-f32", block_oracle::kE4M3, false}}) {
    CAPTURE(c.name);
    for (unsigned seed = 0; seed < 12; ++seed) {
      std::vector<float> values = samples(2, 128, seed);
      if (seed == 0) values.assign(256, 0.0F);
      if (seed == 1) values.assign(256, 0x1p-149F);
      const Quantised found = quantise(recipe_named(c.name), matrix(values, 128));
      for (std::size_t row = 0; row < 2; ++row) {
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * 128);
        const auto wanted = block_oracle::fp8(c.element, c.power_of_two, {first, first + 128});
        CHECK(steps::float_of(found.scales[row]) == wanted.stored);
        const auto codes = found.codes.begin() + static_cast<std::ptrdiff_t>(row * 128);
        CHECK(std::vector<int>(codes, codes + 128) == wanted.codes);
      }
    }
  }
}

TEST_CASE("a square block is the rows' scale that is largest", "[block]") {
  const std::vector<float> values = samples(32, 32, 9);
  const Quantised found = quantise(recipe_named("nvfp4-2d"), matrix(values, 32));
  REQUIRE(found.scales.size() == 4);
  const float largest = block_oracle::largest_magnitude(values);
  for (std::size_t block = 0; block < 4; ++block) {
    std::vector<float> own;
    for (std::size_t r = 0; r < 16; ++r) {
      for (std::size_t c = 0; c < 16; ++c) {
        own.push_back(values[(block / 2 * 16 + r) * 32 + block % 2 * 16 + c]);
      }
    }
    const auto wanted = block_oracle::nvfp4(own, largest);
    CHECK(found.scales[block] == wanted.scale);
    for (std::size_t i = 0; i < 256; ++i) {
      CHECK(found.codes[(block / 2 * 16 + i / 16) * 32 + block % 2 * 16 + i % 16] ==
            wanted.codes[i]);
    }
  }
}

TEST_CASE("columns are the rows of the transposed tensor", "[block]") {
  const std::vector<float> values = samples(64, 48, 4);
  std::vector<float> turned(values.size());
  for (std::size_t r = 0; r < 64; ++r) {
    for (std::size_t c = 0; c < 48; ++c) turned[c * 64 + r] = values[r * 48 + c];
  }
  for (const char* const name : {"nvfp4", "nvfp4-hadamard", "mxfp8-e4m3-rceil", "fp8-128x128"}) {
    CAPTURE(name);
    const Quantised down = quantise(recipe_named(name), matrix(values, 48), {.by_columns = true});
    const Quantised across = quantise(recipe_named(name), matrix(turned, 64));
    CHECK(down.scale_rows == across.scale_columns);
    for (std::size_t r = 0; r < 64; ++r) {
      for (std::size_t c = 0; c < 48; ++c) {
        CHECK(down.codes[r * 48 + c] == across.codes[c * 64 + r]);
      }
    }
  }
}

TEST_CASE("zeros, infinities and NaN", "[block]") {
  std::vector<float> values(64, 1.0F);
  for (std::size_t i = 16; i < 32; ++i) values[i] = 0;
  values[17] = -0.0F;
  Quantised found = quantise(recipe_named("nvfp4"), matrix(values, 64));
  CHECK(found.scales[1] == 0);
  CHECK(found.codes[16] == 0);
  CHECK(found.codes[17] == 8);
  values[0] = kInf;
  found = quantise(recipe_named("nvfp4"), matrix(values, 64));
  CHECK(found.scales[0] == 0x7E);
  CHECK(found.codes[0] == 7);
  CHECK(found.second == std::vector<float>{1});
  values[0] = kNan;
  found = quantise(recipe_named("nvfp4"), matrix(values, 64));
  CHECK(found.scales == std::vector<std::uint32_t>(4, 0x7F));
  CHECK(found.codes[40] == 0);
  const Quantised mx = quantise(recipe_named("mxfp8-e4m3-floor"), matrix(values, 64));
  CHECK(mx.scales[0] == 0xFF);
  CHECK(mx.codes[5] == 0x7F);
  CHECK(mx.scales[1] != 0xFF);
  values[0] = steps::float_of(0xFF812345);  // a NaN with a payload, which no binary32 scale keeps
  found = quantise(recipe_named("nvfp4"), matrix(values, 64));
  CHECK(steps::bits_of(found.second[0]) == 0x7FC00000);
  found = quantise(recipe_named("fp8-current"), matrix(values, 64));
  CHECK(found.scales == std::vector<std::uint32_t>{0x7FC00000});
}

TEST_CASE("the caller's rounding direction does not matter", "[block]") {
  const std::vector<float> values = samples(16, 256, 8);
  for (const Recipe& recipe : recipes()) {
    const Quantised nearest = quantise(recipe, matrix(values, 256), options_of(recipe));
    REQUIRE(std::fesetround(FE_UPWARD) == 0);
    const Quantised upward = quantise(recipe, matrix(values, 256), options_of(recipe));
    REQUIRE(std::fesetround(FE_TONEAREST) == 0);
    CAPTURE(recipe.name);
    CHECK(same(nearest, upward));
  }
}

TEST_CASE("values come back as code times scales", "[block]") {
  const std::vector<float> values = samples(16, 256, 8);
  for (const char* const name :
       {"nvfp4", "nvfp4-row-scaled", "mxfp6-e3m2-even", "fp8-128x128-f32", "hifloat8"}) {
    const Recipe& recipe = recipe_named(name);
    CAPTURE(name);
    for (const bool by_columns : {false, true}) {
      const Quantised found = quantise(recipe, matrix(values, 256), {.by_columns = by_columns});
      const std::vector<float> back = dequantise(recipe, found, 16, 256, by_columns);
      float worst = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::fabs(values[i]) > 1e-30F && std::fabs(values[i]) < 1e4F && back[i] != 0) {
          worst = std::max(worst, std::fabs(back[i] / values[i] - 1));
        }
      }
      CHECK(worst <= 1);
    }
  }
}

TEST_CASE("a recipe refuses what it cannot quantise", "[block]") {
  using Catch::Matchers::Contains;
  const std::vector<float> values(40, 1.0F);
  CHECK_THROWS_WITH(quantise(recipe_named("nvfp4-hadamard"), matrix(values, 40)),
                    Contains("the last dimension is 40, and must be a multiple of 16"));
  CHECK_THROWS_WITH(quantise(recipe_named("fp8-delayed"), matrix(values, 40)),
                    Contains("the largest magnitude of earlier steps is missing"));
  CHECK_THROWS_WITH(quantise(recipe_named("nvfp4"), Matrix{values, 3, 16}),
                    Contains("40 values are no tensor of 3 x 16"));
  CHECK_THROWS_WITH(recipe_named("nvfp5"), Contains("unknown recipe 'nvfp5'"));
  for (const double history : {-1.0, double{kNan}, double{kInf}, 1e39}) {
    CHECK_THROWS_WITH(
        quantise(recipe_named("fp8-delayed"), matrix(values, 40), {.history = history}),
        Contains("must be finite and not negative"));
  }
  for (const Recipe& recipe : recipes()) {
    if (recipe.second == SecondScale::history || 40 % recipe.multiple_of != 0) continue;
    CHECK_THROWS_WITH(quantise(recipe, matrix(values, 40), {.history = 1.0F}),
                      Contains("only recipes with delayed scaling use it; leave it out"));
  }
}

TEST_CASE("parts that do not fit a tensor have no values", "[block]") {
  using Catch::Matchers::Contains;
  const Recipe& recipe = recipe_named("nvfp4-row-scaled");
  const std::vector<float> values(3 * 32, 1.0F);
  const Quantised whole = quantise(recipe, matrix(values, 32));
  CHECK(dequantise(recipe, whole, 3, 32) == values);
  const auto refuses = [&](const auto& change) {
    Quantised broken = whole;
    change(broken);
    CHECK_THROWS_WITH(dequantise(recipe, broken, 3, 32),
                      Contains("a tensor of 3 x 32 has 96 codes, 3 x 2 scales and 0, 1 or 3"));
  };
  refuses([](Quantised& q) { q.codes.pop_back(); });
  refuses([](Quantised& q) { q.scales.pop_back(); });
  refuses([](Quantised& q) { std::swap(q.scale_rows, q.scale_columns); });
  refuses([](Quantised& q) { q.scale_rows = 2; });
  refuses([](Quantised& q) { q.scales.resize(q.scale_rows = q.scale_columns = 1); });
  refuses([](Quantised& q) { q.second.pop_back(); });
  CHECK_THROWS(dequantise(recipe, whole, 3, 32, true));
  const Quantised plain = quantise(recipe_named("hifloat8"), matrix(values, 32));
  CHECK_THROWS(dequantise(recipe_named("nvfp4"), plain, 3, 32));
}

}  // namespace test_quantise
