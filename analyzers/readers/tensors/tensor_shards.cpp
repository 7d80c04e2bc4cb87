// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/tensor_shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace halfscope::analyzers::readers::tensors {

using frames::Notes;
using readers::tensors::ShardIndex;

namespace {

namespace fs = std::filesystem;
using log::BadInput;
using log::printable;

bool is_safetensors(const ShardIndex& index) {
  return std::all_of(index.shards.begin(), index.shards.end(), [](const auto& shard) {
    return fs::path(shard.first).extension() == ".safetensors";
  });
}

std::string shown(const ShardIndex& index) { return printable(index.path.filename().string()); }

std::vector<std::string> all_names(const log::TensorFile& file) {
  std::vector<std::string> names = file.names();
  for (const log::SkippedTensor& skipped : file.skipped()) names.push_back(skipped.name);
  return names;
}

/// Throws log::BadInput if a file of the index is in `files` already; else adds them.
void require_own_files(const ShardIndex& index,
                       std::unordered_map<std::string_view, const ShardIndex*>& files) {
  for (const auto& [file, unused] : index.shards) {
    const auto [at, is_new] = files.try_emplace(file, &index);
    if (is_new) continue;
    throw BadInput(
        fmt::format("{}: names the file '{}', which {} also names; give one of the two as LOG",
                    printable(index.path.string()), printable(file), shown(*at->second)));
  }
}

}  // namespace

std::vector<Index> indexes_to_read(const std::vector<log::OpenPath>& paths, Notes& notes) {
  std::vector<Index> all, read;
  for (const log::OpenPath& path : paths) {
    all.push_back(std::make_shared<ShardIndex>(readers::tensors::read_shard_index(path)));
  }
  std::stable_partition(all.begin(), all.end(), [](const Index& i) { return is_safetensors(*i); });
  std::unordered_map<std::string_view, const ShardIndex*> named, files;
  for (const Index& index : all) {
    const ShardIndex* before = nullptr;
    std::string_view tensor;
    for (const auto& [file, tensors] : index->shards) {
      for (const std::string& name : tensors) {
        const auto [at, is_new] = named.try_emplace(name, index.get());
        if (!is_new && before == nullptr) before = at->second, tensor = name;
      }
    }
    if (before == nullptr) {
      require_own_files(*index, files);
      read.push_back(index);
    } else if (is_safetensors(*before) && !is_safetensors(*index)) {
      notes.add(fmt::format("{}: names tensors that {} also names, and is skipped",
                            printable(index->path.string()), shown(*before)));
    } else {
      throw BadInput(fmt::format(
          "{} is also named by {}, expected every tensor in one index; give one of the two as LOG",
          log::place_text(printable(index->path.string()), tensor), shown(*before)));
    }
  }
  return read;
}

std::string unnamed_note(const std::vector<fs::path>& files) {
  return fmt::format("{}{} by no index beside it, and skipped", printable(files.front().string()),
                     files.size() == 1
                         ? ": is named"
                         : fmt::format(" and {} more tensor files: are named", files.size() - 1));
}

void require_shard(const fs::path& shard, const ShardIndex& index) {
  std::error_code unreadable;
  if (fs::exists(shard, unreadable)) return;
  throw BadInput(fmt::format(
      "{}: names the file '{}', which is missing; copy or download it too, or name the tensor "
      "files that are there",
      printable(index.path.string()), printable(shard.filename().string())));
}

void check_shard(const fs::path& shard, const log::TensorFile& opened, const ShardIndex& index,
                 Notes& notes) {
  const auto& wanted = index.shards.at(shard.filename().string());
  const std::vector<std::string> names = all_names(opened);
  const std::unordered_set<std::string_view> held(names.begin(), names.end());
  for (const std::string& name : wanted) {
    if (held.contains(name)) continue;
    throw BadInput(fmt::format(
        "{} is missing, but {} names it; they are not of one checkpoint: download or save it "
        "again, or name the tensor files themselves",
        log::place_text(printable(shard.string()), name), shown(index)));
  }
  if (held.size() <= wanted.size()) return;
  const auto other = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return !wanted.contains(name); });
  const std::size_t more = held.size() - wanted.size();
  notes.add(fmt::format(
      "{}: {} {} does not name, {} skipped", printable(shard.string()),
      more == 1
          ? fmt::format("tensor '{}', which", printable(other->substr(0, 200)))
          : fmt::format("{} tensors ('{}' first), which", more, printable(other->substr(0, 200))),
      shown(index), more == 1 ? "is" : "are"));
}

void check_size(const Index& index, const std::vector<StepFile>& files, Notes& notes) {
  if (!index->total_size) return;
  std::uint64_t bytes = 0;
  for (const StepFile& file : files) {
    if (file.index != index) continue;
    if (!file.tensor_bytes) return;
    bytes += *file.tensor_bytes;
  }
  if (bytes == *index->total_size) return;
  notes.add(fmt::format(
      "{}: says that its tensors take {} bytes, but its files' take {}: some tensors may be "
      "counted twice there, or be of another checkpoint",
      printable(index->path.string()), *index->total_size, bytes));
}

}  // namespace halfscope::analyzers::readers::tensors
