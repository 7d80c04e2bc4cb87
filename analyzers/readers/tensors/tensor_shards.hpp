// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files with an index beside them: which files are read, and whether they
// hold what the index says. The rules are in docs/folders.md.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/tensors/shard_index.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"

namespace halfscope::analyzers::readers::tensors {

using Index = std::shared_ptr<const readers::tensors::ShardIndex>;

/// Of a folder's indexes those to read: one in safetensors goes before one of the same tensors in
/// PyTorch's format. Throws log::BadInput where others name the same tensors.
std::vector<Index> indexes_to_read(const std::vector<log::OpenPath>& paths, frames::Notes& notes);

/// Says that files beside an index are skipped.
std::string unnamed_note(const std::vector<std::filesystem::path>& files);

/// Throws log::BadInput where the shard is not there.
void require_shard(const std::filesystem::path& shard, const readers::tensors::ShardIndex& index);

/// Throws log::BadInput where a shard lacks a tensor that the index names. Notes tensors that it
/// does not name.
void check_shard(const std::filesystem::path& shard, const log::TensorFile& opened,
                 const readers::tensors::ShardIndex& index, frames::Notes& notes);

/// Notes an index whose total_size is not what its files' tensors take.
void check_size(const Index& index, const std::vector<StepFile>& files, frames::Notes& notes);

}  // namespace halfscope::analyzers::readers::tensors
