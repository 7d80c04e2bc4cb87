// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files with an index: chooses the indexes to read, and checks that the
// files hold what the index says. The rules are in docs/folders.md.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/tensors/shard_index.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"

namespace halfscope::analyzers::readers::tensors {

using Index = std::shared_ptr<const readers::tensors::ShardIndex>;

/// Reads a folder's indexes and returns those whose files are read. If an index of safetensors
/// files and one of PyTorch files name the same tensor, skips the latter, with a note. Throws
/// log::BadInput if other indexes share a tensor or a file.
std::vector<Index> indexes_to_read(const std::vector<log::OpenPath>& paths, frames::Notes& notes);

/// Returns the note that `files` (at least one) are skipped because no index names them.
std::string unnamed_note(const std::vector<std::filesystem::path>& files);

/// Throws log::BadInput if the shard does not exist.
void require_shard(const std::filesystem::path& shard, const readers::tensors::ShardIndex& index);

/// Throws log::BadInput if a shard lacks a tensor that the index names. Notes unnamed tensors.
void check_shard(const std::filesystem::path& shard, const log::TensorFile& opened,
                 const readers::tensors::ShardIndex& index, frames::Notes& notes);

/// Adds a note if the index's total_size is not the size of the tensors in its files.
void check_size(const Index& index, const std::vector<StepFile>& files, frames::Notes& notes);

}  // namespace halfscope::analyzers::readers::tensors
