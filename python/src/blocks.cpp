// SPDX-License-Identifier: Apache-2.0
// Recipes of block formats on arrays. Private: its Python side is halfscope/arrays.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/formats/recipe_choice.hpp"
#include "array_memory.hpp"
#include "bindings.hpp"
#include "halfscope/block/conform.hpp"
#include "reports/answer/conform_words.hpp"
#include "reports/export/json_conform.hpp"
#include "values.hpp"

using namespace nanobind::literals;

namespace halfscope::python {
namespace {

using block::Quantised;
using block::Recipe;

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : block::recipes()) names.emplace_back(recipe.name);
  return names;
}

/// Returns the names of the recipes that transform their rows.
nb::set hadamard_recipes() {
  nb::set names;
  for (const Recipe& recipe : block::recipes()) {
    if (recipe.hadamard) names.add(nb::cast(std::string(recipe.name)));
  }
  return names;
}

/// Returns the recipe of each kind of operand that a name of `--recipe` stands for. Rows and
/// columns have the same one but for the transform, which applies where both operands have it, as
/// in the weight gradient, the product of columns. Throws ValueError.
nb::dict recipes_of_operands(const std::string& name) {
  const Recipe* const one = block::find_recipe(name);
  if (one != nullptr && one->second == block::SecondScale::history) {
    refuse(name +
           " needs largest magnitudes of earlier steps, which emulate() does not keep; use "
           "fp8-current");
  }
  const analyzers::formats::RecipeChoice choice = analyzers::formats::recipe_choice(name);
  const bool same = block::find_recipe(choice.name) != nullptr;
  nb::dict out;
  out["weight"] = std::string(choice.weight);
  out["activation"] = std::string(choice.activation_columns);
  out["gradient"] = std::string(choice.gradient_columns);
  out["other"] = same ? nb::cast(std::string(choice.name)) : nb::none();
  return out;
}

const Recipe& recipe_called(const std::string& name) {
  if (const Recipe* const recipe = block::find_recipe(name)) return *recipe;
  refuse(reports::answer::unknown_recipe_text(name));
}

block::QuantiseOptions options_of(const std::string& format, bool by_columns,
                                  std::optional<double> history = {}) {
  return {.by_columns = by_columns, .history = history, .type = format_named(format).format};
}

/// Rows of a tensor are all its dimensions but the last.
struct Extent {
  std::size_t rows, columns;
};

Extent extent_of(const Input& in) {
  const std::size_t dimensions = in.owner.ndim();
  const std::size_t columns = dimensions == 0 ? 1 : in.owner.shape(dimensions - 1);
  return {columns == 0 ? 0 : in.owner.size() / columns, columns};
}

block::Matrix matrix_of(const Input& in) {
  const auto [rows, columns] = extent_of(in);
  return {in.span<float>(), rows, columns};
}

/// Returns an array that owns the values: NumPy's, or a tensor.
template <class T>
nb::object array_of_values(std::vector<T>&& values, const std::vector<std::size_t>& shape,
                           bool torch) {
  auto* const kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  if (torch) {
    return nb::cast(nb::ndarray<nb::pytorch, T>(kept->data(), shape.size(), shape.data(), owner));
  }
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

std::vector<std::size_t> shape_of(const Input& in) {
  std::vector<std::size_t> shape;
  for (std::size_t i = 0; i < in.owner.ndim(); ++i) shape.push_back(in.owner.shape(i));
  return shape;
}

nb::object scales_of(const Recipe& recipe, const Quantised& made, bool torch) {
  const std::vector<std::size_t> shape = {made.scale_rows, made.scale_columns};
  if (recipe.scale == block::ScaleFormat::none) return nb::none();
  if (recipe.scale != block::ScaleFormat::f32) {
    return array_of_values(std::vector<std::uint8_t>(made.scales.begin(), made.scales.end()), shape,
                           torch);
  }
  std::vector<float> values(made.scales.size());
  std::memcpy(values.data(), made.scales.data(), values.size() * sizeof(float));
  return array_of_values(std::move(values), shape, torch);
}

/// Returns (codes, scales or None, second scales or None). format: of the values before they became
/// float32. If transform is false, a recipe's Hadamard transform is left out.
nb::tuple quantise_blocks(const std::string& name, nb::handle values, const std::string& format,
                          bool transform, bool by_columns, std::uint64_t seed,
                          std::optional<double> history, int threads, bool torch) {
  Recipe recipe = recipe_called(name);
  if (recipe.hadamard && !transform) {
    recipe.hadamard = false;
    recipe.multiple_of = 1;
  }
  const Input in = memory_of<false>(values, "the array");
  block::QuantiseOptions options = options_of(format, by_columns, history);
  options.seed = seed;
  options.threads = threads;
  Quantised made;
  {
    nb::gil_scoped_release release;
    made = block::quantise(recipe, matrix_of(in), options);
  }
  nb::object second = nb::none();
  if (!made.second.empty()) {
    const bool one = recipe.second == block::SecondScale::tensor;
    const auto shape =
        one ? std::vector<std::size_t>{} : std::vector<std::size_t>{made.second.size()};
    second = array_of_values(std::move(made.second), shape, torch);
  }
  return nb::make_tuple(array_of_values(std::move(made.codes), shape_of(in), torch),
                        scales_of(recipe, made, torch), second);
}

/// Returns an output in the library's form. Throws ValueError if its sizes do not fit.
Quantised output_of(const Recipe& recipe, Extent extent, bool by_columns, const Input& codes,
                    nb::handle scales, const std::optional<std::vector<float>>& second) {
  const block::Grid grid = block::grid_of(recipe, extent.rows, extent.columns, by_columns);
  const std::string about = " (recipe " + std::string(recipe.name) + ")";
  if (codes.bits != 8) throw nb::type_error("codes is not uint8, expected one code a byte");
  Quantised out;
  out.scale_rows = grid.rows;
  out.scale_columns = grid.columns;
  out.codes.assign(codes.span<std::uint8_t>().begin(), codes.span<std::uint8_t>().end());
  const std::size_t count = grid.rows * grid.columns;
  if (recipe.scale != block::ScaleFormat::none) {
    const bool wide = recipe.scale == block::ScaleFormat::f32;
    const std::string wanted = std::to_string(grid.rows) + " x " + std::to_string(grid.columns) +
                               (wide ? " of float32" : " of uint8") + about;
    if (scales.is_none()) refuse("scales is None, expected " + wanted);
    const Input in = memory_of<false>(scales, "scales");
    if (in.bits != (wide ? 32 : 8) || in.owner.size() != count) {
      refuse("scales has " + std::to_string(in.owner.size()) + " elements of " +
             std::to_string(in.bits) + " bits, expected " + wanted);
    }
    out.scales =
        block::unpacked_scales(recipe.scale, {in.begin, count * block::scale_width(recipe.scale)});
  }
  if (!second) return out;
  const std::size_t lines = block::second_count(recipe, extent.rows, extent.columns, by_columns);
  if (second->size() != lines) {
    refuse("tensor_scale has " + std::to_string(second->size()) + " elements, expected " +
           (lines == 0 ? "None" : std::to_string(lines)) + about);
  }
  out.second = *second;
  return out;
}

nb::object dequantise_blocks(const std::string& name, nb::handle codes, nb::handle scales,
                             const std::optional<std::vector<float>>& second, bool by_columns,
                             bool torch) {
  const Recipe& recipe = recipe_called(name);
  const Input in = memory_of<false>(codes, "codes");
  const Extent extent = extent_of(in);
  const Quantised found = output_of(recipe, extent, by_columns, in, scales, second);
  if (!second && block::second_count(recipe, extent.rows, extent.columns, by_columns) != 0) {
    refuse("tensor_scale is missing: codes of recipe " + name + " have no values without it");
  }
  std::vector<float> values;
  {
    nb::gil_scoped_release release;
    values = block::dequantise(recipe, found, extent.rows, extent.columns, by_columns);
  }
  return array_of_values(std::move(values), shape_of(in), torch);
}

/// Returns the fields of `halfscope conform --json`.
nb::object conform_blocks(const std::string& name, nb::handle values, const std::string& format,
                          nb::handle codes, nb::handle scales,
                          const std::optional<std::vector<float>>& second, bool by_columns,
                          std::optional<double> history) {
  const Input in = memory_of<false>(values, "the input"), of = memory_of<false>(codes, "codes");
  const Extent extent = extent_of(in);
  if (of.owner.size() != in.owner.size()) {
    refuse("codes has " + std::to_string(of.owner.size()) + " elements, expected " +
           std::to_string(in.owner.size()) + ", as many as the input; one code a byte");
  }
  analyzers::blocks::FileConformity found;
  found.recipe = &recipe_called(name);
  found.columns = extent.columns;
  found.found = output_of(*found.recipe, extent, by_columns, of, scales, second);
  const block::QuantiseOptions options = options_of(format, by_columns, history);
  {
    nb::gil_scoped_release release;
    found.conformity = block::conform(*found.recipe, matrix_of(in), found.found, options);
  }
  return to_python(reports::exports::conform_json(found));
}

}  // namespace

void bind_blocks(nb::module_& module) {
  module.def("recipe_names", &recipe_names);
  module.def("hadamard_recipes", &hadamard_recipes);
  module.def("recipes_of_operands", &recipes_of_operands, "name"_a);
  module.def("quantise_blocks", &quantise_blocks, "recipe"_a, "values"_a, "format"_a, "transform"_a,
             "by_columns"_a, "seed"_a, "history"_a.none(), "threads"_a, "torch"_a);
  module.def("dequantise_blocks", &dequantise_blocks, "recipe"_a, "codes"_a, "scales"_a.none(),
             "tensor_scale"_a.none(), "by_columns"_a, "torch"_a);
  module.def("conform_blocks", &conform_blocks, "recipe"_a, "values"_a, "format"_a, "codes"_a,
             "scales"_a.none(), "tensor_scale"_a.none(), "by_columns"_a, "history"_a.none());
}

}  // namespace halfscope::python
