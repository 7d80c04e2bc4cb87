// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/recipe_choice.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace halfscope::analyzers::formats {

using log::Role;
using underflow::Product;

namespace {

constexpr RecipeChoice kCombinations[] = {
    // Transformer Engine's Float8BlockScaling.
    {"fp8-block", "fp8-128x128", "fp8-1x128", "fp8-1x128", "fp8-1x128", "fp8-1x128"},
    // Transformer Engine's NVFP4BlockScaling.
    {"nvfp4-training", "nvfp4-2d", "nvfp4", "nvfp4-hadamard", "nvfp4-stochastic",
     "nvfp4-hadamard-stochastic"}};

}  // namespace

const block::Recipe* RecipeChoice::of(Role role, bool columns) const {
  switch (role) {
    case Role::weight: return &block::recipe_named(weight);
    case Role::activation:
      return &block::recipe_named(columns ? activation_columns : activation_rows);
    case Role::activation_grad:
      return &block::recipe_named(columns ? gradient_columns : gradient_rows);
    case Role::weight_grad: return columns ? nullptr : &block::recipe_named(gradient_rows);
    default: return nullptr;
  }
}

RecipeChoice recipe_choice(std::string_view name) {
  const auto found = std::ranges::find(kCombinations, name, &RecipeChoice::name);
  if (found != std::end(kCombinations)) return *found;
  const block::Recipe* const known = block::find_recipe(name);
  if (known == nullptr) {
    throw std::invalid_argument("unknown recipe '" + std::string(name) +
                                "'; fp8-block, nvfp4-training and those of halfscope quantise "
                                "--list are known");
  }
  const block::Recipe& recipe = *known;
  if (recipe.second == block::SecondScale::history) {
    throw std::invalid_argument("recipe " + std::string(recipe.name) +
                                " needs the largest magnitudes of earlier steps; --formats replays "
                                "delayed scaling");
  }
  const std::string_view same = recipe.name;
  return {same, same, same, same, same, same};
}

std::vector<RecipeChoice> recipe_choices(const std::vector<std::string>& lists) {
  std::vector<RecipeChoice> out;
  for (const std::string& list : lists) {
    for (std::size_t first = 0; first <= list.size();) {
      const std::size_t end = std::min(list.find(',', first), list.size());
      const RecipeChoice choice = recipe_choice(std::string_view(list).substr(first, end - first));
      if (std::ranges::find(out, choice.name, &RecipeChoice::name) == out.end()) {
        out.push_back(choice);
      }
      first = end + 1;
    }
  }
  return out;
}

Product product_of(Role role, bool columns) {
  switch (role) {
    case Role::weight: return columns ? Product::data_gradient : Product::forward;
    case Role::activation: return columns ? Product::weight_gradient : Product::forward;
    case Role::activation_grad: return columns ? Product::weight_gradient : Product::data_gradient;
    default: return Product::none;
  }
}

}  // namespace halfscope::analyzers::formats
