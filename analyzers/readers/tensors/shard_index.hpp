// SPDX-License-Identifier: Apache-2.0
// The index of a checkpoint in several files, as Hugging Face writes it beside them:
// model.safetensors.index.json, pytorch_model.bin.index.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::tensors {

struct ShardIndex {
  std::filesystem::path path;
  std::map<std::string, std::set<std::string>> shards;  ///< tensors, by the name of their file
  std::optional<std::uint64_t> total_size;              ///< bytes of all tensors
};

/// Whether a file is an index, by its content: an object with "weight_map" near its beginning.
/// Never throws.
bool is_shard_index(const log::OpenPath& path);

/// Files are names beside the index: one that leads elsewhere is refused. Throws log::BadInput.
ShardIndex read_shard_index(const log::OpenPath& path);

}  // namespace halfscope::analyzers::readers::tensors
