// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ranges>
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
  for (const std::string& list : options.recipes) {
    for (const auto name : std::views::split(list, ',')) {
      try {
        const std::string_view text(name.begin(), name.end());
        passes.recipes.push_back(analyzers::formats::recipe_choice(text));
      } catch (const std::invalid_argument& problem) {
        throw BadUsage(fmt::format("--recipe: {}", problem.what()));
      }
    }
  }
  passes.formats |= !passes.recipes.empty();
  return passes;
}

}  // namespace halfscope::cli::options
