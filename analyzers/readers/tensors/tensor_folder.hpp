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

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::tensors {

struct ShardIndex;

/// One file of tensors, with what its metadata and its name say of it.
struct StepFile {
  std::filesystem::path path;
  log::OpenFiles open;  ///< of the log
  std::int64_t step = 0;
  std::uint64_t bytes = 0;
  std::optional<Dtype> as;      ///< --as: what NPY elements without a type stand for
  std::string tensor;           ///< what its one tensor is called, where the file does not say
  std::string shows_weights;    ///< what shows that it holds weights; empty: nothing
  bool scaled = false;          ///< metadata "gradients": "scaled"
  std::optional<double> scale;  ///< metadata "scale", a positive finite number
  bool among_steps = false;     ///< files of other steps are read beside it
  /// Of a shard of a checkpoint: it names the tensors to read.
  std::shared_ptr<const ShardIndex> index;
  std::optional<std::uint64_t> tensor_bytes;  ///< of a shard: what all its tensors take
  std::shared_ptr<log::TensorFile> opened;    ///< of a log of one file: its header is read once
};

struct TensorFolder {
  std::filesystem::path folder;
  log::OpenFiles open;
  std::vector<StepFile> files;               ///< by step, then path
  std::vector<std::filesystem::path> again;  ///< links to files that are listed already
  bool roles_in_names = false;               ///< some tensor's name carries a role
  bool names_cut = false;  ///< some tensor that is called by its file has less than the file's stem
  frames::Notes notes;     ///< what listing had to say
};

/// The tensor files (by extension; those of torch.save by content too) of a folder and of the
/// folders in it whose names have a step; where there is an index of a sharded checkpoint, those
/// that it names. A file's step is its metadata's "step", else its name's, else its folder's, else
/// 0. A file that links lead to more than once is listed once, where it lies if that is in the
/// folder. Empty `files` where there are none. Reads headers, no data. Throws log::BadInput for a
/// file that cannot be read.
TensorFolder list_tensor_folder(const log::OpenPath& folder,
                                std::optional<Dtype> as = std::nullopt);
/// The same of the files that an index names.
TensorFolder list_tensor_index(const log::OpenPath& index, std::optional<Dtype> as = std::nullopt);
/// Whether a folder has any: safetensors, NPY and NPZ files and indexes, or files of torch.save,
/// which lie about in folders of other logs too. Throws log::BadInput where it cannot be read.
bool holds_tensor_files(const log::OpenPath& folder);
bool holds_torch_files(const log::OpenPath& folder);

/// Opens a file: the tensors that are to be read, the one tensor of an NPY file under the name that
/// its folder gives it.
std::shared_ptr<log::TensorFile> open_step_file(const StepFile& file);

/// A single file as a folder that holds it alone; its step is 0 and its tensors keep their names.
TensorFolder single_file(const log::OpenPath& path, std::optional<Dtype> as = std::nullopt);

/// The loss scale that a tensor's values carry: --recorded-scale, else of gradients the metadata's.
/// Throws log::BadInput where the metadata says "scaled" and the scale is unknown.
double scale_of(const StepFile& file, log::Role role, const frames::Selection& selection);

}  // namespace halfscope::analyzers::readers::tensors
