// SPDX-License-Identifier: Apache-2.0
// Effects of recipes of block formats on whole tensors, value by value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzers/formats/recipe_choice.hpp"
#include "analyzers/formats/whole_noise.hpp"
#include "analyzers/frames/whole_tensors.hpp"
#include "halfscope/block/recipe.hpp"

namespace halfscope::analyzers::formats {

/// Sums over the tensors of one name.
struct RecipeSums {
  underflow::RecipeFit fit;   ///< `noise` and the bias are set by finished()
  std::uint64_t rounded = 0;  ///< number of values in the bias
  CompensatedSum signal, noise, bias, bias_squares;

  underflow::RecipeFit finished() const;
};

/// Adds a tensor's recorded values; binary64 values are rounded to binary32 first. Tensors of
/// several steps weigh by their unscaled values.
void add_recipe(RecipeSums& sums, const frames::WholeTensor& tensor, int threads,
                const frames::ProgressCallback& tell = {});

/// Returns the sums to fill for a tensor of this role: of kMxRecipes by rows, or of `choices` in
/// each orientation that makes a difference. Normal numbers, to compare with, are 2^18 in rows of
/// 1024.
std::vector<RecipeSums> mx_sums();
std::vector<RecipeSums> recipe_sums(std::span<const RecipeChoice> choices, log::Role role);

}  // namespace halfscope::analyzers::formats
