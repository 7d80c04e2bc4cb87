// SPDX-License-Identifier: Apache-2.0
#include "halfscope/block/recipe.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace halfscope::block {
namespace {

constexpr Shape k1x16 = {1, 16}, k16x16 = {16, 16}, k1x32 = {1, 32}, k1x128 = {1, 128},
                k128x128 = {128, 128}, kTensor = {0, 0};
constexpr std::string_view kTe = "Transformer Engine 2.20", kAo = "torchao 0.18.0",
                           kAoMain = "torchao, main of 2026-08-21", kOcp = "OCP MX 1.0, 6.3",
                           kGemm = "DeepGEMM", kHiF8 = "arXiv 2409.16626";

constexpr Recipe nvfp4(std::string_view name, Shape block, Formula formula = Formula::nvfp4) {
  return {.name = name,
          .element = Element::e2m1,
          .block = block,
          .scale = ScaleFormat::e4m3,
          .formula = formula,
          .second = SecondScale::tensor,
          .source = kTe};
}

constexpr Recipe nvfp4_of(std::string_view name, Formula formula, std::string_view source) {
  Recipe out = nvfp4(name, k1x16, formula);
  out.multiple_of = 16;
  out.dialect_of = "nvfp4";
  out.source = source;
  return out;
}

constexpr Recipe with_hadamard(Recipe recipe) {
  recipe.hadamard = true;
  recipe.multiple_of = 16;
  return recipe;
}

constexpr Recipe at_random(Recipe recipe) {
  recipe.rounding = ElementRounding::random;
  return recipe;
}

constexpr Recipe by_row(Recipe recipe) {
  recipe.second = SecondScale::row;
  return recipe;
}

constexpr Recipe mx(std::string_view name, Element element, Formula formula) {
  return {.name = name,
          .element = element,
          .block = k1x32,
          .scale = ScaleFormat::e8m0,
          .formula = formula,
          .source = formula == Formula::mx_floor ? kOcp : kAoMain};
}

constexpr Recipe mx_of(std::string_view name, std::string_view means, Element element,
                       Formula formula, std::string_view source) {
  Recipe out = mx(name, element, formula);
  out.dialect_of = means;
  out.source = source;
  return out;
}

/// DeepGEMM's FP4: ties toward zero, and blocks of at least 1e-4.
constexpr Recipe deepgemm_fp4() {
  Recipe out =
      mx_of("mxfp4-deepgemm", "mxfp4-rceil", Element::e2m1, Formula::mx_round_up_from_1, kGemm);
  out.rounding = ElementRounding::ties_to_zero;
  out.least = 1e-4F;
  return out;
}

constexpr Recipe fp8(std::string_view name, Element element, Shape block, Formula formula) {
  return {.name = name,
          .element = element,
          .block = block,
          .scale = ScaleFormat::f32,
          .formula = formula,
          .source = kTe};
}

constexpr Recipe fp8_delayed(std::string_view name, Element element) {
  Recipe out = fp8(name, element, kTensor, Formula::fp8);
  out.second = SecondScale::history;
  return out;
}

constexpr Recipe fp8_of(std::string_view name, std::string_view means, Shape block, Formula formula,
                        float least, bool saturate, std::string_view source) {
  Recipe out = fp8(name, Element::e4m3, block, formula);
  out.least = least;
  out.saturate = saturate;
  out.dialect_of = means;
  out.source = source;
  return out;
}

constexpr std::array kRecipes = {
    nvfp4("nvfp4", k1x16),
    nvfp4("nvfp4-2d", k16x16),
    with_hadamard(nvfp4("nvfp4-hadamard", k1x16)),
    at_random(nvfp4("nvfp4-stochastic", k1x16)),
    with_hadamard(at_random(nvfp4("nvfp4-hadamard-stochastic", k1x16))),
    by_row(nvfp4("nvfp4-row-scaled", k1x16)),
    nvfp4("nvfp4-four-over-six", k1x16, Formula::nvfp4_four_over_six),
    nvfp4("nvfp4-four-over-six-2d", k16x16, Formula::nvfp4_four_over_six),
    nvfp4("nvfp4-four-over-six-square", k1x16, Formula::nvfp4_four_over_six_square),
    nvfp4("nvfp4-four-over-six-448", k1x16, Formula::nvfp4_four_over_six_448),
    mx("mxfp8-e4m3-floor", Element::e4m3, Formula::mx_floor),
    mx("mxfp8-e4m3-even", Element::e4m3, Formula::mx_even),
    mx("mxfp8-e4m3-ceil", Element::e4m3, Formula::mx_ceil),
    mx("mxfp8-e4m3-rceil", Element::e4m3, Formula::mx_round_up),
    mx("mxfp8-e5m2-floor", Element::e5m2, Formula::mx_floor),
    mx("mxfp8-e5m2-even", Element::e5m2, Formula::mx_even),
    mx("mxfp8-e5m2-ceil", Element::e5m2, Formula::mx_ceil),
    mx("mxfp8-e5m2-rceil", Element::e5m2, Formula::mx_round_up),
    mx("mxfp6-e2m3-floor", Element::e2m3, Formula::mx_floor),
    mx("mxfp6-e2m3-even", Element::e2m3, Formula::mx_even),
    mx("mxfp6-e2m3-ceil", Element::e2m3, Formula::mx_ceil),
    mx("mxfp6-e2m3-rceil", Element::e2m3, Formula::mx_round_up),
    mx("mxfp6-e3m2-floor", Element::e3m2, Formula::mx_floor),
    mx("mxfp6-e3m2-even", Element::e3m2, Formula::mx_even),
    mx("mxfp6-e3m2-ceil", Element::e3m2, Formula::mx_ceil),
    mx("mxfp6-e3m2-rceil", Element::e3m2, Formula::mx_round_up),
    mx("mxfp4-floor", Element::e2m1, Formula::mx_floor),
    mx("mxfp4-even", Element::e2m1, Formula::mx_even),
    mx("mxfp4-ceil", Element::e2m1, Formula::mx_ceil),
    mx("mxfp4-rceil", Element::e2m1, Formula::mx_round_up),
    fp8("fp8-1x128", Element::e4m3, k1x128, Formula::fp8_power_of_two),
    fp8("fp8-128x128", Element::e4m3, k128x128, Formula::fp8_power_of_two),
    fp8("fp8-1x128-e5m2", Element::e5m2, k1x128, Formula::fp8_power_of_two),
    fp8("fp8-128x128-e5m2", Element::e5m2, k128x128, Formula::fp8_power_of_two),
    fp8("fp8-1x128-f32", Element::e4m3, k1x128, Formula::fp8),
    fp8("fp8-128x128-f32", Element::e4m3, k128x128, Formula::fp8),
    fp8("fp8-current", Element::e4m3, kTensor, Formula::fp8),
    fp8("fp8-current-e5m2", Element::e5m2, kTensor, Formula::fp8),
    fp8_delayed("fp8-delayed", Element::e4m3),
    fp8_delayed("fp8-delayed-e5m2", Element::e5m2),
    Recipe{.name = "hifloat8",
           .element = Element::hifloat8,
           .block = kTensor,
           .scale = ScaleFormat::none,
           .formula = Formula::none,
           .rounding = ElementRounding::ties_to_away,
           .saturate = false,
           .source = kHiF8},
    // Dialects: what a library does in place of the recipe that it means.
    nvfp4_of("nvfp4-two-roundings", Formula::nvfp4_two_roundings, "Transformer Engine before 2.12"),
    nvfp4_of("nvfp4-torchao", Formula::nvfp4_torchao, kAo),
    nvfp4_of("nvfp4-modelopt", Formula::nvfp4_modelopt, "NVIDIA ModelOpt"),
    nvfp4_of("nvfp4-compressed-tensors", Formula::nvfp4_compressed_tensors,
             "compressed-tensors 0.20.0"),
    mx_of("mxfp8-e4m3-floor-torchao", "mxfp8-e4m3-floor", Element::e4m3, Formula::mx_torchao_floor,
          kAo),
    mx_of("mxfp8-e4m3-even-torchao", "mxfp8-e4m3-even", Element::e4m3, Formula::mx_torchao_even,
          kAo),
    mx_of("mxfp8-e4m3-ceil-torchao", "mxfp8-e4m3-ceil", Element::e4m3, Formula::mx_torchao_ceil,
          kAo),
    mx_of("mxfp8-e4m3-rceil-torchao", "mxfp8-e4m3-rceil", Element::e4m3,
          Formula::mx_torchao_round_up, kAo),
    mx_of("mxfp8-e4m3-deepgemm", "mxfp8-e4m3-rceil", Element::e4m3, Formula::mx_round_up_from_1,
          kGemm),
    deepgemm_fp4(),
    fp8_of("fp8-1x128-deepseek", "fp8-1x128-f32", k1x128, Formula::fp8_divide, 0, true,
           "DeepSeek-V3, kernel.py"),
    fp8_of("fp8-1x128-deepgemm", "fp8-1x128-f32", k1x128, Formula::fp8_reciprocal, 1e-4F, false,
           kGemm),
    fp8_of("fp8-1x128-deepgemm-up", "fp8-1x128", k1x128, Formula::fp8_reciprocal_up, 1e-4F, false,
           kGemm),
    fp8_of("fp8-1x128-torchao", "fp8-1x128-f32", k1x128, Formula::fp8_binary64, 1e-12F, true, kAo),
    fp8_of("fp8-128x128-torchao", "fp8-128x128-f32", k128x128, Formula::fp8_binary64, 1e-12F, true,
           kAo),
};

}  // namespace

std::span<const Recipe> recipes() { return kRecipes; }

const Recipe* find_recipe(std::string_view name) {
  std::string plain(name);
  for (char& c : plain) c = c == ':' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  const auto called = [](std::string_view exact) {
    const auto found = std::ranges::find(kRecipes, exact, &Recipe::name);
    return found == kRecipes.end() ? nullptr : &*found;
  };
  if (const Recipe* const recipe = called(plain)) return recipe;
  constexpr std::string_view kMxfp8 = "mxfp8";
  if (plain == kMxfp8 || plain == "mxfp4")
    return called(plain == kMxfp8 ? "mxfp8-e4m3-rceil" : "mxfp4-rceil");
  return plain.starts_with("mxfp8-") ? called("mxfp8-e4m3" + plain.substr(kMxfp8.size())) : nullptr;
}

const Recipe& recipe_named(std::string_view name) {
  if (const Recipe* const recipe = find_recipe(name)) return *recipe;
  throw std::invalid_argument("unknown recipe '" + std::string(name) +
                              "'; halfscope quantise --list shows all");
}

}  // namespace halfscope::block
