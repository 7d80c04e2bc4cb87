// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files with an index, as Hugging Face libraries write them
// (model.safetensors.index.json, pytorch_model.bin.index.json): reads indexes, chooses those to
// read, and checks that the files hold what the index says. The rules are in docs/folders.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzers/frames/message.hpp"
#include "halfscope/log/open_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// The files of a sharded checkpoint, and the tensors in each.
struct ShardIndex {
  std::filesystem::path path;
  std::map<std::string, std::set<std::string>> shards;  ///< names of tensors, by their file's name
  std::optional<std::uint64_t> total_size;              ///< bytes of all tensors; empty if unknown
  /// Each tensor's file, a key of `shards`: do not copy the index.
  std::unordered_map<std::string, const std::string*> file_of = {};
};
using Index = std::shared_ptr<const ShardIndex>;

/// Returns true if a file is a JSON object with "weight_map" near its beginning. Never throws.
bool is_shard_index(const log::OpenPath& path);

/// Reads an index. Throws log::BadInput, also if a shard is not in the index's own folder.
Index read_shard_index(const log::OpenPath& path);

/// Reads a folder's indexes and returns those whose files are read. If an index of safetensors
/// files and one of PyTorch files name the same tensor, skips the latter, with a note. Throws
/// log::BadInput if other indexes share a tensor or a file.
std::vector<Index> indexes_to_read(const std::vector<log::OpenPath>& paths, frames::Notes& notes);

/// Throws log::BadInput if a shard lacks a tensor that the index names. Notes unnamed tensors.
void check_shard(const std::filesystem::path& shard, const log::TensorFile& opened,
                 const ShardIndex& index, frames::Notes& notes);

}  // namespace halfscope::analyzers::readers::tensors
