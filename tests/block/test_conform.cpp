// SPDX-License-Identifier: Apache-2.0
// The checker finds planted faults, each made here without the table of recipes where it can be.
#include "halfscope/block/conform.hpp"

#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/random.hpp"

namespace test_conform {

using namespace halfscope::block;

constexpr std::size_t kRows = 48, kColumns = 256;

/// Normal values, in rows of different sizes, with some exact zeros.
std::vector<float> values() {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> out;
  for (std::size_t i = 0; i < kRows * kColumns; ++i) {
    const int row = static_cast<int>(i / kColumns);
    out.push_back(i % 97 == 0 ? 0 : std::ldexp(normal(random), -(row % 24)));
  }
  // A row of small magnitudes on the middles between FP4 codes, beside a largest of 6.
  for (std::size_t i = 0; i < kColumns; ++i) {
    constexpr float kMiddles[] = {6, 0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5};
    out[i] = kMiddles[i % 8];
  }
  out[7 * kColumns + 3] = -1e-30F;
  return out;
}

struct Fault {
  const char* what;
  const char* recipe;
  Cause cause;
  std::string changed;  ///< part of Conformity::changed
  std::function<Quantised(const Recipe&, const Matrix&)> make;
};

/// The output of the recipe with one word changed.
std::function<Quantised(const Recipe&, const Matrix&)> with(
    const std::function<void(Recipe&)>& change) {
  return [change](const Recipe& recipe, const Matrix& in) {
    Recipe other = recipe;
    change(other);
    return quantise_scalar(other, in);
  };
}

std::function<Quantised(const Recipe&, const Matrix&)> of(const char* name) {
  return
      [name](const Recipe&, const Matrix& in) { return quantise_scalar(recipe_named(name), in); };
}

std::vector<Fault> faults() {
  const auto minus_zero = [](const Recipe& recipe, const Matrix& in) {
    Quantised out = quantise(recipe, in);
    for (std::uint8_t& code : out.codes) code = code == 8 ? 0 : code;
    return out;
  };
  const auto exchanged = [](const Recipe& recipe, const Matrix& in) {
    Quantised out = quantise(recipe, in);
    for (std::size_t i = 0; i + 1 < out.codes.size(); i += 2)
      std::swap(out.codes[i], out.codes[i + 1]);
    return out;
  };
  const auto inverted = [](const Recipe& recipe, const Matrix& in) {
    Quantised out = quantise(recipe, in);
    for (std::uint32_t& scale : out.scales) scale = steps::bits_of(1 / steps::float_of(scale));
    return out;
  };
  return {
      {"divides twice", "nvfp4", Cause::dialect, "nvfp4-modelopt", of("nvfp4-modelopt")},
      {"a least block scale", "nvfp4", Cause::dialect, "nvfp4-torchao", of("nvfp4-torchao")},
      {"eps", "fp8-1x128-f32", Cause::least, "1e-4", with([](Recipe& r) { r.least = 1e-4F; })},
      {"ties away from zero", "mxfp4-floor", Cause::ties, "away",
       with([](Recipe& r) { r.rounding = ElementRounding::ties_to_away; })},
      {"ties toward zero", "mxfp4-floor", Cause::ties, "zero",
       with([](Recipe& r) { r.rounding = ElementRounding::ties_to_zero; })},
      {"no tensor scale", "nvfp4", Cause::no_second_scale, "",
       with([](Recipe& r) { r.second = SecondScale::none; })},
      {"no saturation", "mxfp8-e4m3-floor", Cause::no_saturation, "",
       with([](Recipe& r) { r.saturate = false; })},
      {"another scale rule", "mxfp8-e4m3-rceil", Cause::formula, "floor", of("mxfp8-e4m3-floor")},
      {"the sign of zero", "nvfp4", Cause::zero_sign, "", minus_zero},
      {"halves of bytes exchanged", "nvfp4", Cause::nibbles, "", exchanged},
      {"scales inverted", "fp8-128x128", Cause::reciprocal, "", inverted},
      {"no Hadamard transform", "nvfp4-hadamard", Cause::hadamard, "without", of("nvfp4")},
      {"a fraction in the scale", "fp8-1x128", Cause::formula, "f32", of("fp8-1x128-f32")},
  };
}

TEST_CASE("the right output of each recipe conforms", "[block]") {
  const std::vector<float> x = values();
  const Matrix in = {x, kRows, kColumns};
  for (const Recipe& recipe : recipes()) {
    CAPTURE(recipe.name);
    QuantiseOptions options;
    if (recipe.second == SecondScale::history) options.history = 4.0F;
    options.seed = 5;
    const Conformity found = conform(recipe, in, quantise(recipe, in, options), options);
    CHECK(found.conforms());
    CHECK(found.cause == Cause::none);
  }
}

TEST_CASE("the checker names the cause of each planted fault", "[block]") {
  const std::vector<float> x = values();
  const Matrix in = {x, kRows, kColumns};
  for (const Fault& fault : faults()) {
    CAPTURE(fault.what);
    const Recipe& recipe = recipe_named(fault.recipe);
    const Conformity found = conform(recipe, in, fault.make(recipe, in));
    CHECK_FALSE(found.conforms());
    CHECK(static_cast<int>(found.cause) == static_cast<int>(fault.cause));
    CHECK(found.changed.find(fault.changed) != std::string::npos);
    CHECK(found.left.total() == 0);
  }
}

/// An output of nvfp4-stochastic in which each value rounds up if its random number is above.
Quantised at_random(const Matrix& in, const std::function<std::uint32_t(std::size_t)>& draw) {
  const Recipe& recipe = recipe_named("nvfp4-stochastic");
  std::vector<float> scaled;
  Quantised out = quantise(recipe, in, {.scaled = &scaled});
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    out.codes[i] =
        encode(Element::e2m1, scaled[i], {.rounding = ElementRounding::random, .random = draw(i)});
  }
  return out;
}

TEST_CASE("rounding at random that is none, or is not even", "[block]") {
  const std::vector<float> x = values();
  const Matrix in = {x, kRows, kColumns};
  const Recipe& recipe = recipe_named("nvfp4-stochastic");
  const auto cause_of = [&](const Quantised& output) { return conform(recipe, in, output).cause; };
  const auto word = [](std::size_t i) { return halfscope::random_word(99, i); };
  CHECK(conform(recipe, in, at_random(in, word)).conforms());
  CHECK(cause_of(quantise(recipe_named("nvfp4"), in)) == Cause::nearest);
  CHECK(cause_of(at_random(in, [](std::size_t) { return 1U << 31; })) == Cause::not_random);
  CHECK(cause_of(at_random(in, [&](std::size_t i) { return word(i) / 10 * 9; })) == Cause::biased);
  // The same bits for neighbours of four are no fault that this test sees: each is even.
  CHECK(conform(recipe, in, at_random(in, [&](std::size_t i) { return word(i / 4); })).conforms());
}

TEST_CASE("a code that is no neighbour of its value is a difference, rounded at random or not",
          "[block]") {
  const std::vector<float> x = values();
  const Matrix in = {x, kRows, kColumns};
  const Recipe& recipe = recipe_named("nvfp4-stochastic");
  Quantised output = quantise(recipe, in);
  output.codes[300] ^= 0x4;
  const Conformity found = conform(recipe, in, output);
  CHECK_FALSE(found.conforms());
  CHECK(found.difference.codes == 1);
  CHECK(found.difference.first_code == 300);
}

TEST_CASE("an output of another size is refused", "[block]") {
  const std::vector<float> x = values();
  const Matrix in = {x, kRows, kColumns};
  Quantised output = quantise(recipe_named("nvfp4"), in);
  output.scales.pop_back();
  CHECK_THROWS_WITH(conform(recipe_named("nvfp4"), in, output),
                    Catch::Matchers::Contains("12288 codes and 767 scales"));
}

}  // namespace test_conform
