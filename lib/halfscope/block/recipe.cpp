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

/// Returns a recipe whose scales follow from its formula. means: Recipe::dialect_of.
constexpr Recipe row(std::string_view name, Element element, Shape block, Formula formula,
                     std::string_view source, std::string_view means = "") {
  const bool nvfp4 = formula >= Formula::nvfp4 && formula <= Formula::nvfp4_compressed_tensors;
  return {.name = name,
          .element = element,
          .block = block,
          .scale = nvfp4                    ? ScaleFormat::e4m3
                   : formula < Formula::fp8 ? ScaleFormat::e8m0
                                            : ScaleFormat::f32,
          .formula = formula,
          .second = nvfp4 ? SecondScale::tensor : SecondScale::none,
          .multiple_of = nvfp4 && !means.empty() ? 16U : 1U,  // libraries need whole blocks
          .dialect_of = means,
          .source = source};
}

constexpr Recipe with(Recipe recipe, float least, bool saturate = true,
                      ElementRounding rounding = ElementRounding::ties_to_even) {
  recipe.least = least;
  recipe.saturate = saturate;
  recipe.rounding = rounding;
  return recipe;
}

constexpr Recipe delayed(Recipe recipe) {
  recipe.second = SecondScale::history;
  return recipe;
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

constexpr auto kRecipes = [] {
  using enum Element;
  using enum Formula;
  return std::array{
      row("nvfp4", e2m1, k1x16, nvfp4, kTe),
      row("nvfp4-2d", e2m1, k16x16, nvfp4, kTe),
      with_hadamard(row("nvfp4-hadamard", e2m1, k1x16, nvfp4, kTe)),
      at_random(row("nvfp4-stochastic", e2m1, k1x16, nvfp4, kTe)),
      with_hadamard(at_random(row("nvfp4-hadamard-stochastic", e2m1, k1x16, nvfp4, kTe))),
      by_row(row("nvfp4-row-scaled", e2m1, k1x16, nvfp4, kTe)),
      row("nvfp4-four-over-six", e2m1, k1x16, nvfp4_four_over_six, kTe),
      row("nvfp4-four-over-six-2d", e2m1, k16x16, nvfp4_four_over_six, kTe),
      row("nvfp4-four-over-six-square", e2m1, k1x16, nvfp4_four_over_six_square, kTe),
      row("nvfp4-four-over-six-448", e2m1, k1x16, nvfp4_four_over_six_448, kTe),
      row("mxfp8-e4m3-floor", e4m3, k1x32, mx_floor, kOcp),
      row("mxfp8-e4m3-even", e4m3, k1x32, mx_even, kAoMain),
      row("mxfp8-e4m3-ceil", e4m3, k1x32, mx_ceil, kAoMain),
      row("mxfp8-e4m3-rceil", e4m3, k1x32, mx_round_up, kAoMain),
      row("mxfp8-e5m2-floor", e5m2, k1x32, mx_floor, kOcp),
      row("mxfp8-e5m2-even", e5m2, k1x32, mx_even, kAoMain),
      row("mxfp8-e5m2-ceil", e5m2, k1x32, mx_ceil, kAoMain),
      row("mxfp8-e5m2-rceil", e5m2, k1x32, mx_round_up, kAoMain),
      row("mxfp6-e2m3-floor", e2m3, k1x32, mx_floor, kOcp),
      row("mxfp6-e2m3-even", e2m3, k1x32, mx_even, kAoMain),
      row("mxfp6-e2m3-ceil", e2m3, k1x32, mx_ceil, kAoMain),
      row("mxfp6-e2m3-rceil", e2m3, k1x32, mx_round_up, kAoMain),
      row("mxfp6-e3m2-floor", e3m2, k1x32, mx_floor, kOcp),
      row("mxfp6-e3m2-even", e3m2, k1x32, mx_even, kAoMain),
      row("mxfp6-e3m2-ceil", e3m2, k1x32, mx_ceil, kAoMain),
      row("mxfp6-e3m2-rceil", e3m2, k1x32, mx_round_up, kAoMain),
      row("mxfp4-floor", e2m1, k1x32, mx_floor, kOcp),
      row("mxfp4-even", e2m1, k1x32, mx_even, kAoMain),
      row("mxfp4-ceil", e2m1, k1x32, mx_ceil, kAoMain),
      row("mxfp4-rceil", e2m1, k1x32, mx_round_up, kAoMain),
      row("fp8-1x128", e4m3, k1x128, fp8_power_of_two, kTe),
      row("fp8-128x128", e4m3, k128x128, fp8_power_of_two, kTe),
      row("fp8-1x128-e5m2", e5m2, k1x128, fp8_power_of_two, kTe),
      row("fp8-128x128-e5m2", e5m2, k128x128, fp8_power_of_two, kTe),
      row("fp8-1x128-f32", e4m3, k1x128, fp8, kTe),
      row("fp8-128x128-f32", e4m3, k128x128, fp8, kTe),
      row("fp8-current", e4m3, kTensor, fp8, kTe),
      row("fp8-current-e5m2", e5m2, kTensor, fp8, kTe),
      delayed(row("fp8-delayed", e4m3, kTensor, fp8, kTe)),
      delayed(row("fp8-delayed-e5m2", e5m2, kTensor, fp8, kTe)),
      Recipe{.name = "hifloat8",
             .element = hifloat8,
             .block = kTensor,
             .scale = ScaleFormat::none,
             .formula = none,
             .rounding = ElementRounding::ties_to_away,
             .saturate = false,
             .source = kHiF8},
      // Dialects: what a library does in place of the recipe that it means.
      row("nvfp4-two-roundings", e2m1, k1x16, nvfp4_two_roundings, "Transformer Engine before 2.12",
          "nvfp4"),
      row("nvfp4-torchao", e2m1, k1x16, nvfp4_torchao, kAo, "nvfp4"),
      row("nvfp4-modelopt", e2m1, k1x16, nvfp4_modelopt, "NVIDIA ModelOpt", "nvfp4"),
      row("nvfp4-compressed-tensors", e2m1, k1x16, nvfp4_compressed_tensors,
          "compressed-tensors 0.20.0", "nvfp4"),
      row("mxfp8-e4m3-floor-torchao", e4m3, k1x32, mx_torchao_floor, kAo, "mxfp8-e4m3-floor"),
      row("mxfp8-e4m3-even-torchao", e4m3, k1x32, mx_torchao_even, kAo, "mxfp8-e4m3-even"),
      row("mxfp8-e4m3-ceil-torchao", e4m3, k1x32, mx_torchao_ceil, kAo, "mxfp8-e4m3-ceil"),
      row("mxfp8-e4m3-rceil-torchao", e4m3, k1x32, mx_torchao_round_up, kAo, "mxfp8-e4m3-rceil"),
      row("mxfp8-e4m3-deepgemm", e4m3, k1x32, mx_round_up_from_1, kGemm, "mxfp8-e4m3-rceil"),
      with(row("mxfp4-deepgemm", e2m1, k1x32, mx_round_up_from_1, kGemm, "mxfp4-rceil"), 1e-4F,
           true, ElementRounding::ties_to_zero),
      row("fp8-1x128-deepseek", e4m3, k1x128, fp8_divide, "DeepSeek-V3, kernel.py",
          "fp8-1x128-f32"),
      with(row("fp8-1x128-deepgemm", e4m3, k1x128, fp8_reciprocal, kGemm, "fp8-1x128-f32"), 1e-4F,
           false),
      with(row("fp8-1x128-deepgemm-up", e4m3, k1x128, fp8_reciprocal_up, kGemm, "fp8-1x128"), 1e-4F,
           false),
      with(row("fp8-1x128-torchao", e4m3, k1x128, fp8_binary64, kAo, "fp8-1x128-f32"), 1e-12F),
      with(row("fp8-128x128-torchao", e4m3, k128x128, fp8_binary64, kAo, "fp8-128x128-f32"),
           1e-12F),
  };
}();

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
