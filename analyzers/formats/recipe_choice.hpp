// SPDX-License-Identifier: Apache-2.0
// Which recipe of block formats quantises which operand of a layer's products.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/whole_findings.hpp"
#include "halfscope/block/recipe.hpp"
#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::formats {

/// Recipes of the operands of a layer's three products, as `--recipe` names them together. A
/// product sums over the rows of one copy of an operand, or over the columns of the other copy:
/// forward: rows of the activation and of the weight; data gradient: rows of the output's gradient,
/// columns of the weight; weight gradient: columns of both.
struct RecipeChoice {
  std::string_view name;
  std::string_view weight, activation_rows, activation_columns, gradient_rows, gradient_columns;

  /// Returns the recipe; null if tensors of this role are no operands.
  const block::Recipe* of(log::Role role, bool columns) const;
};

/// Returns the choice of that name: a recipe ("mxfp8:floor" is "mxfp8-e4m3-floor"), or a
/// framework's combination: "fp8-block", "nvfp4-training". Throws std::invalid_argument if there is
/// none, or if the recipe needs magnitudes of earlier steps.
RecipeChoice recipe_choice(std::string_view name);

/// Returns the choices of lists of names with commas. Throws as recipe_choice().
std::vector<RecipeChoice> recipe_choices(const std::vector<std::string>& lists);

/// Returns the product that takes a tensor in one orientation as an operand.
underflow::Product product_of(log::Role role, bool columns);

}  // namespace halfscope::analyzers::formats
