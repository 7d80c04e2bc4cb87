// SPDX-License-Identifier: Apache-2.0
// `halfscope quantise`, `halfscope conform`, `halfscope vectors`: recipes of block formats.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "analyzers/blocks/files.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/output.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/conform_words.hpp"
#include "reports/export/json_conform.hpp"

namespace halfscope::cli::commands {
namespace {

using analyzers::blocks::Request;
using options::BadUsage;

struct QuantiseOptions : Request {
  std::string out, output, json;
  bool list = false;
};

int list_recipes() {
  const auto rows = reports::answer::recipe_rows();
  std::size_t name = 0, blocks = 0;
  for (const auto& row : rows) {
    name = std::max(name, row.name.size());
    blocks = std::max(blocks, row.blocks.size());
  }
  for (const auto& row : rows) {
    fmt::print("{:<{}}  {:<{}}  {}\n", row.name, name, row.blocks, blocks, row.source);
  }
  return options::kFine;
}

/// Runs work(), whose std::invalid_argument is about the recipe or a tensor's size.
template <class Work>
auto refusing(const Work& work) {
  try {
    return work();
  } catch (const std::invalid_argument& e) {
    throw log::BadInput(e.what());
  }
}

void require(const std::string& value, const char* option) {
  if (value.empty()) throw BadUsage(fmt::format("{} is missing; --help shows all options", option));
}

void check_recipe(const std::string& name) {
  if (block::find_recipe(name) == nullptr) {
    throw BadUsage(reports::answer::unknown_recipe_text(name));
  }
}

void add_tensor_options(options::Command& command, QuantiseOptions& options) {
  command.option("--tensor", options.tensor, "the tensor, if the file has several").type("NAME");
  command.flag("--columns", options.by_columns, "blocks run down the columns, not along the rows");
  command
      .option("--history", options.history,
              "for fp8-delayed: the largest magnitude of earlier steps")
      .type("A");
}

/// Throws BadUsage if an output is one of the inputs.
void require_own(const std::vector<std::string>& outputs, const std::vector<std::string>& inputs) {
  options::LogOptions logs;
  logs.logs = inputs;
  options::require_own_files(outputs, logs);
}

int run_quantise(QuantiseOptions& options) {
  if (options.list) return list_recipes();
  require(options.input, "the file X");
  require(options.recipe, "--recipe");
  require(options.out, "--out");
  check_recipe(options.recipe);
  require_own({options.out}, {options.input});
  refusing([&] { analyzers::blocks::quantise_file(options, options.out); });
  return options::kFine;
}

int run_conform(QuantiseOptions& options) {
  check_recipe(options.recipe);
  require_own({options.json}, {options.input, options.output});
  const auto found =
      refusing([&] { return analyzers::blocks::conform_files(options, options.output); });
  if (!options.json.empty()) {
    options::write_output(
        options.json, reports::exports::json_text(reports::exports::conform_json(found)) + "\n");
  }
  if (options.json != "-") {
    for (const std::string& line : reports::answer::conform_lines(found)) fmt::print("{}\n", line);
  }
  return found.conformity.conforms() ? options::kFine : options::kConditionHolds;
}

}  // namespace

void add_quantise(options::Parser& parser) {
  options::Command command = parser.add(
      "quantise", "Quantise a tensor by a recipe: NVFP4, MXFP8, MXFP4, FP8 blocks, HiFloat8");
  const auto options = std::make_shared<QuantiseOptions>();
  command.option("X", options->input, "an NPY or safetensors file with F16, BF16 or F32");
  command.option("--recipe", options->recipe, "the recipe, such as nvfp4").type("NAME");
  command.option("--out", options->out, "write codes and scales as safetensors").type("FILE");
  add_tensor_options(command, *options);
  command.option("--seed", options->seed, "for recipes that round at random (default: 0)")
      .at_least(std::uint64_t{0});
  command.flag("--list", options->list, "print all recipes, with blocks and source");
  command.footer("Example:  halfscope quantise weight.npy --recipe nvfp4 --out q.safetensors");
  command.runs([options] { return run_quantise(*options); });
}

void add_conform(options::Parser& parser) {
  options::Command command =
      parser.add("conform", "Check a quantiser's output against a recipe, bit for bit");
  const auto options = std::make_shared<QuantiseOptions>();
  command.option("RECIPE", options->recipe, "the recipe; halfscope quantise --list shows all")
      .required();
  command.option("--input", options->input, "what was quantised: NPY or safetensors")
      .type("X")
      .required();
  command.option("--output", options->output, "safetensors with codes, scales, tensor_scale")
      .type("Q")
      .required();
  add_tensor_options(command, *options);
  command.option("--json", options->json, "write the result as JSON; - for stdout").type("FILE");
  command.footer(
      "Exit code: 0 if it conforms, 4 if it differs, 1 for bad input\n"
      "Example:   halfscope conform nvfp4 --input weight.npy --output q.safetensors");
  command.runs([options] { return run_conform(*options); });
}

void add_vectors(options::Parser& parser) {
  options::Command command =
      parser.add("vectors", "Write conformance vectors of a recipe, with every threshold and tie");
  const auto options = std::make_shared<QuantiseOptions>();
  command.option("RECIPE", options->recipe, "the recipe; halfscope quantise --list shows all")
      .required();
  command.option("--out", options->out, "the folder for RECIPE.safetensors").type("DIR").required();
  command.footer("Example:  halfscope vectors nvfp4 --out vectors");
  command.runs([options] {
    check_recipe(options->recipe);
    const auto path = analyzers::blocks::write_vectors(options->recipe, options->out);
    fmt::print("{}\n", log::printable(path.string()));
    return options::kFine;
  });
}

}  // namespace halfscope::cli::commands
