// SPDX-License-Identifier: Apache-2.0
// Lists the tensor files of a log without a manifest, such as checkpoints and tensors that a
// training script saved. The rules are in docs/folders.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

struct ShardIndex;

/// One file of tensors, with the properties that its metadata and its name show.
struct StepFile {
  log::OpenPath at;
  std::int64_t step = 0;
  std::optional<Dtype> as = {};  ///< --as: dtype of NPY elements without a type
  /// The index that names this file and the tensors to read from it. Null if it is not a shard.
  std::shared_ptr<const ShardIndex> index = nullptr;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> tensor_bytes = {};  ///< bytes of all its tensors, if known
  std::string tensor = {};         ///< name of its only tensor; empty if the file has the names
  std::string shows_weights = {};  ///< weights_shown(): why it holds weights; empty if unknown
  /// Contents of the file if no tensor's name in the folder has a role; else empty.
  std::optional<frames::Unnamed> unnamed = {};
  bool scaled = false;               ///< metadata "gradients" is "scaled"
  bool unscaled = false;             ///< metadata "gradients" is "unscaled"
  std::optional<double> scale = {};  ///< metadata "scale", a positive finite number
  bool among_steps = false;          ///< the selection has files of other steps too
  /// The open file, for a log of one file, so that its header is read once. Else null.
  std::shared_ptr<const log::TensorFile> opened = nullptr;
};

/// The tensor files of a folder, of a sharded checkpoint, or a single file.
struct TensorFolder {
  log::OpenPath at;                  ///< the folder, the index or the single file
  std::vector<StepFile> files = {};  ///< sorted by step, then path
  frames::Notes notes = {};          ///< notes about the listing
};

/// Lists the tensor files of a log: a folder and its subfolders whose names have a step, the index
/// of a sharded checkpoint, or a single file. In folders, tensor files are recognised by extension,
/// those of torch.save also by content; if a folder has an index, only the files that it names are
/// listed. A file's step is the "step" of its metadata, else the step in its name, else that in its
/// folder's name, else 0; it is 0 for a single file. A file to which several links lead is listed
/// once. `files` is empty if there are none. Reads headers only. Throws log::BadInput if a file
/// cannot be read.
TensorFolder tensor_files_of(const log::OpenPath& log, std::optional<Dtype> as);
/// Returns true if a folder has safetensors, NPY or NPZ files, an index or a DCP checkpoint. Throws
/// log::BadInput if the folder cannot be read.
bool holds_tensor_files(const log::OpenPath& folder);
/// The same for files of torch.save, which folders of other logs often hold too.
bool holds_torch_files(const log::OpenPath& folder);

/// Returns the files whose steps are selected.
std::vector<StepFile> selected_files(const TensorFolder& folder,
                                     const frames::Selection& selection);

/// Opens a file with only the tensors to read, under the names that they have in the folder. Throws
/// log::BadInput.
std::shared_ptr<const log::TensorFile> open_step_file(const StepFile& file);

/// Returns the loss scale that a tensor's values carry: --recorded-scale, else the metadata's scale
/// for gradients that it says are scaled (log::BadInput if that is unknown), else 1.
double scale_of(const StepFile& file, log::Role role, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers::tensors
