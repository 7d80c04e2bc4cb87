// SPDX-License-Identifier: Apache-2.0
// Reads the index of a checkpoint that is split into several files, as Hugging Face libraries write
// it: model.safetensors.index.json, pytorch_model.bin.index.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// The files of a sharded checkpoint, and the tensors in each.
struct ShardIndex {
  std::filesystem::path path;
  std::map<std::string, std::set<std::string>> shards;  ///< names of tensors, by their file's name
  std::optional<std::uint64_t> total_size;              ///< bytes of all tensors; empty if unknown
};

/// Returns true if a file is a JSON object with "weight_map" near its beginning. Never throws.
bool is_shard_index(const log::OpenPath& path);

/// Reads an index. Throws log::BadInput, also if a shard is not in the index's own folder.
ShardIndex read_shard_index(const log::OpenPath& path);

}  // namespace halfscope::analyzers::readers::tensors
