// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/manifest.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <limits>
#include <string_view>

#include "halfscope/log/error.hpp"
#include "halfscope/log/output_file.hpp"
#include "halfscope/log/read_file.hpp"
#include "halfscope/version.hpp"

namespace halfscope::log {
namespace {

using nlohmann::json;

constexpr std::uintmax_t kMostBytes = 16 << 20;
constexpr int kMostDepth = 100;
// Keys with a defined meaning; all others belong to `about`.
constexpr std::array kOwnKeys = {"schema",     "gradients", "sharded",
                                 "loss_dtype", "rank",      "world_size"};

/// Reads the keys of a file; error messages name the file.
class ManifestFields {
 public:
  /// Both arguments must outlive this object.
  ManifestFields(const std::string& where, const json& object) : where_(where), object_(object) {}

  [[noreturn]] void reject(const std::string& key, const std::string& wanted) const {
    const std::string found =
        object_.contains(key) ? printable(dumped(object_.at(key))) : "missing";
    throw BadInput(where_ + ": '" + key + "' is " + found + ", expected " + wanted +
                   "; correct it (docs/run-log.md)");
  }
  bool has(const std::string& key) const { return object_.contains(key); }

  int integer(const std::string& key, int low, int fallback) const {
    if (!has(key)) return fallback;
    const json& value = object_.at(key);
    constexpr int kHigh = std::numeric_limits<int>::max();
    const bool fits = value.is_number_integer() && value >= low && value <= kHigh;
    if (!fits) reject(key, "an integer from " + std::to_string(low));
    return value.get<int>();
  }
  std::string text(const std::string& key, const std::string& wanted) const {
    if (!has(key) || !object_.at(key).is_string()) reject(key, wanted);
    return object_.at(key).get<std::string>();
  }
  const json& at(const std::string& key) const { return object_.at(key); }
  const std::string& where() const { return where_; }

 private:
  static std::string dumped(const json& value) {
    constexpr std::size_t kMost = 60;
    const std::string text = value.dump();
    return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
  }
  const std::string& where_;
  const json& object_;
};

json parsed(std::string_view text, const std::string& where) {
  if (text.size() > kMostBytes) {
    throw BadInput(where + ": holds " + std::to_string(text.size()) +
                   " bytes, but a manifest has at most " + std::to_string(kMostBytes) +
                   "; is this file a run log's run.json?");
  }
  // nlohmann::json copies and writes recursively, so the nesting of input is limited here.
  const auto bounded = [&where](int depth, json::parse_event_t, const json&) {
    if (depth <= kMostDepth) return true;
    throw BadInput(where + ": nests JSON more than " + std::to_string(kMostDepth) +
                   " deep, but no manifest does; is this file a run log's run.json?");
  };
  json object = json::parse(text.begin(), text.end(), bounded, false);
  if (!object.is_object()) {
    throw BadInput(where +
                   ": holds no JSON object, but a run log's manifest is one; restore it, or write "
                   "one by hand (docs/run-log.md)");
  }
  return object;
}

void require_known_schema(const ManifestFields& fields) {
  if (!fields.has("schema")) fields.reject("schema", "the version of the log's layout");
  const int schema = fields.integer("schema", 1, 1);
  if (schema <= kSchema) return;
  std::string writer;
  if (fields.has("halfscope") && fields.at("halfscope").is_string()) {
    writer = " (written by halfscope " + printable(fields.at("halfscope").get<std::string>()) + ")";
  }
  throw BadInput(fields.where() + ": schema " + std::to_string(schema) + writer +
                 ", and this halfscope " + std::string(kVersion) + " reads schema 1 to " +
                 std::to_string(kSchema) + "; read it with the halfscope that wrote it or a newer");
}

std::vector<Role> sharded_roles(const ManifestFields& fields) {
  std::vector<Role> roles;
  if (!fields.has("sharded")) return roles;
  if (!fields.at("sharded").is_array()) fields.reject("sharded", "an array of roles");
  for (const json& name : fields.at("sharded")) {
    const auto role = name.is_string() ? find_role(name.get<std::string>()) : std::nullopt;
    if (!role) fields.reject("sharded", "an array of roles such as \"weight_grad\"");
    roles.push_back(*role);
  }
  return roles;
}

json object_of(const std::string& where, const Manifest& manifest) {
  json object = {{"schema", kSchema},
                 {"halfscope", kVersion},
                 {"gradients", name_of(manifest.gradients)},
                 {"sharded", json::array()},
                 {"rank", manifest.rank},
                 {"world_size", manifest.world_size}};
  for (const Role role : manifest.sharded) object["sharded"].push_back(name_of(role));
  if (manifest.loss_dtype) object["loss_dtype"] = name_of(*manifest.loss_dtype);
  for (const auto& [key, value] : manifest.about->items()) {
    for (const char* const own : kOwnKeys) {
      if (key == own) {
        throw BadInput(where + ": '" + key +
                       "' is given among fields that only inform, but has a meaning of its own; "
                       "set that field of the manifest");
      }
    }
    if (key != "halfscope") object[key] = value;
  }
  return object;
}

[[noreturn]] void refuse_content(const std::string& where, const json::exception& error) {
  throw BadInput(where + ": the manifest's content is not JSON (" + printable(error.what()) +
                 "); give text as UTF-8");
}

}  // namespace

std::string_view name_of(ScaleState state) {
  return state == ScaleState::scaled ? "scaled" : "unscaled";
}

std::optional<ScaleState> find_scale_state(std::string_view name) {
  if (name == "scaled") return ScaleState::scaled;
  if (name == "unscaled") return ScaleState::unscaled;
  return std::nullopt;
}

Manifest read_manifest(const OpenPath& file) {
  return manifest_of(read_text(file), printable(file.path.string()));
}

Manifest manifest_of(std::string_view text, const std::string& where) {
  const json object = parsed(text, where);
  const ManifestFields fields(where, object);
  require_known_schema(fields);
  Manifest manifest;
  manifest.schema = fields.integer("schema", 1, 1);
  const std::string states = "\"scaled\" or \"unscaled\"";
  const auto state = find_scale_state(fields.text("gradients", states));
  if (!state) fields.reject("gradients", states);
  manifest.gradients = *state;
  manifest.sharded = sharded_roles(fields);
  if (fields.has("loss_dtype")) {
    const std::string wanted = "a dtype such as \"F32\"";
    manifest.loss_dtype = find_dtype(fields.text("loss_dtype", wanted));
    if (!manifest.loss_dtype) fields.reject("loss_dtype", wanted);
  }
  manifest.rank = fields.integer("rank", 0, 0);
  manifest.world_size = fields.integer("world_size", 1, 1);
  *manifest.about = object;
  for (const char* const own : kOwnKeys) manifest.about->erase(own);
  return manifest;
}

std::string text_of(const Manifest& manifest, const std::string& where) {
  try {
    json object = object_of(where, manifest);
    const auto writer = manifest.about->find("halfscope");
    if (writer != manifest.about->end()) object["halfscope"] = *writer;
    return object.dump();
  } catch (const json::exception& error) {
    refuse_content(where, error);
  }
}

void write_manifest(const std::filesystem::path& file, const Manifest& manifest) {
  const std::string where = printable(file.string());
  std::string text;
  try {
    text = object_of(where, manifest).dump(2) + "\n";
  } catch (const json::exception& error) {
    refuse_content(where, error);
  }
  OutputFile out(file);
  out.write(text);
  out.commit();
}

}  // namespace halfscope::log
