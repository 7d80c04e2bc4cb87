// SPDX-License-Identifier: Apache-2.0
// The quantiser, its checker and its conformance vectors on files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "halfscope/block/conform.hpp"

namespace halfscope::analyzers::blocks {

/// A tensor to quantise, and how.
struct Request {
  std::string input;   ///< path of an NPY or safetensors file with F16, BF16 or F32
  std::string tensor;  ///< its name; empty: the only tensor of the file
  std::string recipe;
  bool by_columns = false;
  std::optional<std::uint64_t> seed = {};  ///< default: 0
  std::optional<double> history = {};      ///< largest magnitude of earlier steps
};

/// Quantises a tensor into a safetensors file with `codes` (U8, in the tensor's shape), `scales`
/// (U8, or F32) and `tensor_scale` (F32), if the recipe has them. Throws log::BadInput and
/// std::invalid_argument, as block::quantise().
void quantise_file(const Request& request, const std::filesystem::path& out);

/// Results of conform_files().
struct FileConformity {
  const block::Recipe* recipe = nullptr;
  block::Conformity conformity;
  block::Quantised found;
  std::uint64_t columns = 0;  ///< last dimension of the tensor
};

/// Compares a file as quantise_file() writes it, or a case of one as write_vectors() does, with the
/// recipe. Throws log::BadInput if a tensor is missing or has another type or size.
FileConformity conform_files(const Request& request, const std::filesystem::path& output);

/// Largest magnitude of earlier steps for the vectors of a recipe with SecondScale::history.
inline constexpr float kHistoryOfVectors = 4;

/// Writes RECIPE.safetensors into a folder, with the recipe's conformance vectors:
/// docs/numerics/recipes.md, section 6. Creates the folder. Returns the path. Throws log::BadInput.
std::filesystem::path write_vectors(const std::string& recipe, const std::filesystem::path& folder);

}  // namespace halfscope::analyzers::blocks
