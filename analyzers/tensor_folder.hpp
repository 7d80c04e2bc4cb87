// SPDX-License-Identifier: Apache-2.0
// A folder of tensor files without a manifest: the shards and steps that training scripts and
// checkpoints leave behind. The rules are in docs/folders.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/source.hpp"

namespace halfscope::analyzers {

/// One file of tensors, with what its metadata and its name say of it.
struct StepFile {
  std::filesystem::path path;
  std::int64_t step = 0;
  std::uint64_t bytes = 0;
  std::string tensor;           ///< NPY: what its one tensor is called; else empty
  bool scaled = false;          ///< metadata "gradients": "scaled"
  std::optional<double> scale;  ///< metadata "scale", a positive finite number
};

struct TensorFolder {
  std::filesystem::path folder;
  std::vector<StepFile> files;               ///< by step, then path
  std::vector<std::filesystem::path> again;  ///< links to files that are listed already
  bool roles_in_names =
      false;                   ///< if no tensor's name carries a role, all are taken as weight_grad
  bool npy_names_cut = false;  ///< some NPY file's tensor is called less than the file's stem
};

/// The step in a file's or folder's name: the last of "step-000012", "step_12", "step=12",
/// "step12", and the same with "checkpoint", as a word of its own; any case.
std::optional<std::int64_t> step_in_name(std::string_view name);

/// The safetensors, NPY and NPZ files (by extension) of a folder and of the folders in it whose
/// names have a step. A file's step is its metadata's "step", else its name's, else its folder's,
/// else 0. A file that links lead to more than once is listed once, where it lies if that is in the
/// folder. Empty `files` where there are none. Reads headers, no data. Throws log::BadInput for a
/// file that cannot be read.
TensorFolder list_tensor_folder(const std::filesystem::path& folder);

/// Opens a file; the one tensor of an NPY file has the name its folder gives it.
std::unique_ptr<log::TensorFile> open_step_file(const StepFile& file);

/// What the metadata of a single file says; its step is 0 and its tensors keep their names.
StepFile single_file(const std::filesystem::path& path);

/// The loss scale that a tensor's values carry: --recorded-scale, else of gradients the metadata's.
/// Throws log::BadInput where the metadata says "scaled" and nobody knows the scale.
double scale_of(const StepFile& file, log::Role role, const Selection& selection);

}  // namespace halfscope::analyzers
