// SPDX-License-Identifier: Apache-2.0
// Inputs on which quantisers differ: every threshold of a recipe, and the values beside it.
// docs/numerics/recipes.md, section 6, lists the cases.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "halfscope/block/recipe.hpp"

namespace halfscope::block {

struct VectorCase {
  std::string name;  ///< "zeros", "ties", ...
  std::size_t rows = 0, columns = 0;
  std::vector<float> values;
};

/// Returns the cases of a recipe, of at most 150,000 values in all.
std::vector<VectorCase> vector_cases(const Recipe& recipe);

}  // namespace halfscope::block
