// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/shards.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analyzers/readers/common/log_files.hpp"
#include "halfscope/log/coded_tensors.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using frames::Notes;
using log::BadInput;
using log::printable;

constexpr std::string_view kWeightMap = "weight_map";
/// Longest index in bytes. An index of a million tensors with long names needs half of it.
constexpr std::uint64_t kLongest = std::uint64_t{1} << 28;

/// Reads weight_map and metadata.total_size from the JSON; ignores all else.
class IndexReader final : public nlohmann::json_sax<Json> {
 public:
  IndexReader(const std::string& file, std::string_view json, ShardIndex& index)
      : file_(file), json_(json), index_(index) {}

  bool null() override { return value("null"); }
  bool boolean(bool) override { return value("a boolean"); }
  bool number_integer(number_integer_t) override { return value("a number"); }
  bool number_float(number_float_t number, const string_t&) override {
    // Some writers store the sum of sizes as a float.
    const bool whole = number >= 0 && number < 0x1p63;
    return whole ? number_unsigned(static_cast<number_unsigned_t>(number)) : value("a number");
  }
  bool binary(binary_t&) override { return value("binary data"); }
  bool number_unsigned(number_unsigned_t number) override {
    if (depth_ == 2 && section_ == "metadata" && key_ == "total_size") index_.total_size = number;
    return value("a number");
  }
  bool string(string_t& text) override {
    if (!in_map()) return value("a string");
    if (index_.file_of.contains(key_)) {
      refuse(fmt::format("tensor '{}' twice", shown(key_)), "every tensor once");
    }
    add(text);
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    if (depth_ == 1) section_ = key_;
    return true;
  }
  bool start_object(std::size_t) override { return enter("an object"); }
  bool start_array(std::size_t) override { return enter("an array"); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t at, const std::string&, const Json::exception&) override {
    const std::size_t first = at == 0 ? 0 : at - 1;  // the position counts from one
    const std::string found = first < json_.size() ? shown(json_.substr(first, 1)) : "the end";
    refuse(fmt::format("{} at byte {} of {}", found, first, json_.size()), "JSON in UTF-8");
  }

  void finish() const {
    if (!seen_) refuse("no weight_map", "one that names the file of each tensor");
  }

 private:
  bool in_map() const { return depth_ == 2 && section_ == kWeightMap; }

  bool value(std::string_view what) const {
    if (in_map()) refuse(fmt::format("{} for tensor '{}'", what, shown(key_)), "a file's name");
    return true;
  }

  bool enter(std::string_view what) {
    value(what);
    const bool map = depth_ == 1 && section_ == kWeightMap;
    if ((depth_ == 0 || map) && what != "an object") refuse(what, "an object of names");
    seen_ = seen_ || map;
    ++depth_;
    return true;
  }

  bool leave() {
    --depth_;
    return true;
  }

  /// Adds a file by its name. Throws log::BadInput if the name leads to another folder.
  void add(const std::string& name) {
    const std::filesystem::path path(name);
    const bool beside = !name.empty() && path == path.filename() && name != "." && name != ".." &&
                        name.find('\0') == std::string::npos;
    if (!beside) {
      refuse(fmt::format("'{}' as the file of tensor '{}'", shown(name), shown(key_)),
             "the name of a file in its own folder: nothing outside is read");
    }
    const auto shard = index_.shards.try_emplace(name).first;
    shard->second.insert(key_);
    index_.file_of.emplace(key_, &shard->first);
  }

  [[noreturn]] void refuse(std::string_view found, std::string_view wanted) const {
    throw BadInput(
        fmt::format("{}: the index of a sharded checkpoint holds {}, expected {}; write or "
                    "download it again, or name the tensor files themselves",
                    file_, found, wanted));
  }

  static std::string shown(std::string_view text) { return printable(text.substr(0, 200)); }

  const std::string& file_;
  std::string_view json_;
  ShardIndex& index_;
  std::string key_, section_;
  std::uint64_t depth_ = 0;
  bool seen_ = false;
};

bool is_safetensors(const ShardIndex& index) {
  return std::all_of(index.shards.begin(), index.shards.end(), [](const auto& shard) {
    return fs::path(shard.first).extension() == ".safetensors";
  });
}

std::string name_of(const ShardIndex& index) { return printable(index.path.filename().string()); }

/// Throws log::BadInput if a file of the index is in `files` already; else adds them.
void require_own_files(const ShardIndex& index,
                       std::unordered_map<std::string_view, const ShardIndex*>& files) {
  for (const auto& [file, unused] : index.shards) {
    const auto [at, is_new] = files.try_emplace(file, &index);
    if (is_new) continue;
    throw BadInput(
        fmt::format("{}: names the file '{}', which {} also names; give one of the two as LOG",
                    printable(index.path.string()), printable(file), name_of(*at->second)));
  }
}

/// Adds a note on each tensor of 8 bits whose scales are in another file than `shard`.
void note_missing_scales(const fs::path& shard, const log::TensorFile& opened,
                         const ShardIndex& index, Notes& notes) {
  const std::string here = shard.filename().string();
  for (const std::string& name : index.shards.at(here)) {
    const auto tensor = opened.outline(name);
    if (!tensor || format_of(tensor->view.dtype).width != 8) continue;
    for (const std::string& scales : log::scale_names(name)) {
      const auto file = index.file_of.find(scales);
      if (file == index.file_of.end() || *file->second == here) continue;
      notes.add(fmt::format("{} is read without its scales, which are in another file, {}",
                            log::place_text(printable(shard.string()), name),
                            printable(*file->second)));
    }
  }
}

}  // namespace

bool is_shard_index(const log::OpenPath& path) {
  const std::string start = common::beginning_of(path, std::size_t{1} << 14);
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  return first != std::string::npos && start[first] == '{' &&
         start.find("\"weight_map\"") != std::string::npos;
}

Index read_shard_index(const log::OpenPath& path) {
  const std::string name = log::printable(path.path.string());
  const std::string json = log::read_text(path, kLongest + 1);
  if (json.size() > kLongest) {
    throw BadInput(fmt::format("{}: holds more than {} bytes, expected an index of at most {}",
                               name, kLongest, kLongest));
  }
  auto index = std::make_shared<ShardIndex>(ShardIndex{path.path, {}, {}, {}});
  IndexReader reader(name, json, *index);
  Json::sax_parse(json.begin(), json.end(), &reader);
  reader.finish();
  return index;
}

std::vector<Index> indexes_to_read(const std::vector<log::OpenPath>& paths, Notes& notes) {
  std::vector<Index> all, read;
  for (const log::OpenPath& path : paths) all.push_back(read_shard_index(path));
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
                            printable(index->path.string()), name_of(*before)));
    } else {
      throw BadInput(fmt::format(
          "{} is also named by {}, expected every tensor in one index; give one of the two as LOG",
          log::place_text(printable(index->path.string()), tensor), name_of(*before)));
    }
  }
  return read;
}

void check_shard(const fs::path& shard, const log::TensorFile& opened, const ShardIndex& index,
                 Notes& notes) {
  const auto& wanted = index.shards.at(shard.filename().string());
  std::vector<std::string> names = opened.names();
  std::erase_if(names, [&](const std::string& name) { return opened.parts().contains(name); });
  for (const auto& [name, parts] : opened.parts()) {
    names.insert(names.end(), parts.begin(), parts.end());
  }
  for (const log::SkippedTensor& skipped : opened.skipped()) names.push_back(skipped.name);
  const std::unordered_set<std::string_view> held(names.begin(), names.end());
  for (const std::string& name : wanted) {
    if (held.contains(name)) continue;
    throw BadInput(fmt::format(
        "{} is missing, but {} names it; they are not of one checkpoint: download or save it "
        "again, or name the tensor files themselves",
        log::place_text(printable(shard.string()), name), name_of(index)));
  }
  note_missing_scales(shard, opened, index, notes);
  if (held.size() <= wanted.size()) return;
  const auto other = std::find_if(names.begin(), names.end(),
                                  [&](const std::string& name) { return !wanted.contains(name); });
  const std::size_t more = held.size() - wanted.size();
  notes.add(fmt::format(
      "{}: {} {} does not name, {} skipped", printable(shard.string()),
      more == 1
          ? fmt::format("tensor '{}', which", printable(other->substr(0, 200)))
          : fmt::format("{} tensors ('{}' first), which", more, printable(other->substr(0, 200))),
      name_of(index), more == 1 ? "is" : "are"));
}

}  // namespace halfscope::analyzers::readers::tensors
