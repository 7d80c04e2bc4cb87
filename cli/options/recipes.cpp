// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <stdexcept>

#include "cli/options/common.hpp"

namespace halfscope::cli::options {

void add_recipes(Command& command, LogOptions& options) {
  command
      .option("--recipe", options.recipes,
              "also quantise the operands of each layer's products by recipes of block formats "
              "(nvfp4, mxfp8:floor, fp8-block, nvfp4-training, ..: halfscope quantise --list) and "
              "name the layers to keep in BF16; implies --formats; repeatable")
      .type("NAME[,NAME...]")
      .repeatable();
}

analyzers::Passes passes_of(const LogOptions& options) {
  analyzers::Passes passes = options.passes;
  try {
    passes.recipes = analyzers::formats::recipe_choices(options.recipes);
  } catch (const std::invalid_argument& problem) {
    throw BadUsage(fmt::format("--recipe: {}", problem.what()));
  }
  passes.formats |= !passes.recipes.empty();
  return passes;
}

}  // namespace halfscope::cli::options
