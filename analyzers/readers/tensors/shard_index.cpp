// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/shard_index.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "analyzers/readers/common/log_files.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using Json = nlohmann::json;
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
    if (!names_.insert(key_).second) {
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
    index_.shards[name].insert(key_);
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
  std::unordered_set<std::string> names_;
  std::string key_, section_;
  std::uint64_t depth_ = 0;
  bool seen_ = false;
};

}  // namespace

bool is_shard_index(const log::OpenPath& path) {
  const std::string start = common::beginning_of(path, std::size_t{1} << 14);
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  return first != std::string::npos && start[first] == '{' &&
         start.find("\"weight_map\"") != std::string::npos;
}

ShardIndex read_shard_index(const log::OpenPath& path) {
  const std::string name = log::printable(path.path.string());
  const std::string json = log::read_text(path, kLongest + 1);
  if (json.size() > kLongest) {
    throw BadInput(fmt::format("{}: holds more than {} bytes, expected an index of at most {}",
                               name, kLongest, kLongest));
  }
  ShardIndex index;
  index.path = path.path;
  IndexReader reader(name, json, index);
  Json::sax_parse(json.begin(), json.end(), &reader);
  reader.finish();
  return index;
}

}  // namespace halfscope::analyzers::readers::tensors
