// SPDX-License-Identifier: Apache-2.0
// Lists the tensor files of a folder without a manifest, such as checkpoints and tensors that a
// training script saved. The rules are in docs/folders.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::tensors {

struct ShardIndex;

/// One file of tensors, with the properties that its metadata and its name show.
struct StepFile {
  std::filesystem::path path;
  log::OpenFiles open;  ///< the open files of its log
  std::int64_t step = 0;
  std::uint64_t bytes = 0;
  std::optional<Dtype> as;      ///< --as: dtype of NPY elements without a type
  std::string tensor;           ///< name of its only tensor; empty if the file has the names
  std::string shows_weights;    ///< weights_shown(): why it holds weights; empty if unknown
  bool scaled = false;          ///< metadata "gradients" is "scaled"
  std::optional<double> scale;  ///< metadata "scale", a positive finite number
  bool among_steps = false;     ///< the selection has files of other steps too
  /// The index that names this file and the tensors to read from it. Null if it is not a shard.
  std::shared_ptr<const ShardIndex> index;
  std::optional<std::uint64_t> tensor_bytes;  ///< for a shard: bytes of all its tensors, if known
  /// The open file, for a log of one file, so that its header is read once. Else null.
  std::shared_ptr<log::TensorFile> opened;
};

/// The tensor files of a folder, of a sharded checkpoint, or a single file.
struct TensorFolder {
  std::filesystem::path folder;  ///< the folder, the index or the single file
  log::OpenFiles open;
  std::vector<StepFile> files;               ///< sorted by step, then path
  std::vector<std::filesystem::path> again;  ///< links to files that are listed already
  bool roles_in_names = false;               ///< true if the name of some tensor has a role
  bool names_cut = false;  ///< true if a tensor has its file's name without the step in it
  frames::Notes notes;     ///< notes about the listing
};

/// Lists the tensor files of a folder and of its subfolders whose names have a step. Tensor files
/// are recognised by extension, those of torch.save also by content. If a folder has an index of a
/// sharded checkpoint, lists only the files that the index names. A file's step is the "step" of
/// its metadata, else the step in its name, else that in its folder's name, else 0. A file to which
/// several links lead is listed once. `files` is empty if there are none. Reads headers only.
/// Throws log::BadInput if a file cannot be read.
TensorFolder list_tensor_folder(const log::OpenPath& folder,
                                std::optional<Dtype> as = std::nullopt);
/// Lists the files that the index of a sharded checkpoint names. Throws log::BadInput.
TensorFolder list_tensor_index(const log::OpenPath& index, std::optional<Dtype> as = std::nullopt);
/// Returns true if list_tensor_folder() would find safetensors, NPY or NPZ files, an index or a DCP
/// checkpoint. Throws log::BadInput if the folder cannot be read.
bool holds_tensor_files(const log::OpenPath& folder);
/// The same for files of torch.save, which folders of other logs often hold too.
bool holds_torch_files(const log::OpenPath& folder);

/// Opens a file with only the tensors to read; a tensor without a usable name in its file is
/// named StepFile::tensor. Throws log::BadInput.
std::shared_ptr<log::TensorFile> open_step_file(const StepFile& file);

/// Returns a folder that holds one file only; its step is 0 and its tensors keep their names.
TensorFolder single_file(const log::OpenPath& path, std::optional<Dtype> as = std::nullopt);

/// Returns the loss scale that a tensor's values carry: --recorded-scale, else the metadata's scale
/// for gradients that it says are scaled (log::BadInput if that is unknown), else 1.
double scale_of(const StepFile& file, log::Role role, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers::tensors
