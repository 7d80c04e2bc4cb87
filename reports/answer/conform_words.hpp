// SPDX-License-Identifier: Apache-2.0
// The answer of `halfscope conform`: whether an output has a recipe's bits, else what differs and
// the most likely cause.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/blocks/files.hpp"

namespace halfscope::reports::answer {

/// Returns a cause's name in JSON: "scale_rule".
std::string_view name_of(block::Cause cause);

/// Returns the sentences, the verdict first.
std::vector<std::string> conform_lines(const analyzers::blocks::FileConformity& found);

/// A row of the table of recipes.
struct RecipeRow {
  std::string name, blocks, source;
};
std::vector<RecipeRow> recipe_rows();

/// Returns the message for a name that no recipe has, with the closest one.
std::string unknown_recipe_text(const std::string& name);

}  // namespace halfscope::reports::answer
