// SPDX-License-Identifier: Apache-2.0
// Checkpoints in several files with an index: what the index says holds, or is told of.
#include <fmt/format.h>
#include "analyzers/logs.hpp"
#include "analyzers/readers/tensors/shards.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/whole_tensors.hpp"
#include "catch.hpp"

namespace test_shards {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

void write(const std::filesystem::path& path,
           const std::vector<std::pair<std::string, Values>>& tensors) {
  std::filesystem::create_directories(path.parent_path());
  std::vector<log::NamedTensor> named;
  for (const auto& [name, values] : tensors) {
    named.push_back({name, {values.size()}, view_of(values)});
  }
  log::write_safetensors(path, named);
}

/// {"metadata": {"total_size": N}, "weight_map": {...}}
std::string index_of(const std::vector<std::pair<std::string, std::string>>& tensors,
                     std::uint64_t total_size) {
  std::string map;
  for (const auto& [tensor, file] : tensors) {
    map += fmt::format("{}\"{}\": \"{}\"", map.empty() ? "" : ", ", tensor, file);
  }
  return fmt::format("{{\"metadata\": {{\"total_size\": {}}}, \"weight_map\": {{{}}}}}\n",
                     total_size, map);
}

/// Two shards of three tensors, with their index.
void write_checkpoint(const TempFolder& folder) {
  write(folder / kFirst, {{"a.weight", {1, 2}}, {"b.weight", {0, 4}}});
  write(folder / kSecond, {{"c.weight", {8}}});
  folder.write(kIndex,
               index_of({{"a.weight", kFirst}, {"b.weight", kFirst}, {"c.weight", kSecond}}, 20));
}

std::vector<std::string> names_of(const underflow::Analysis& analysis) {
  std::vector<std::string> names;
  for (const underflow::TensorFindings& tensor : analysis.logs[0].tensors)
    names.push_back(tensor.name);
  return names;
}

std::string notes_of(const underflow::Analysis& analysis) {
  std::string all;
  for (const std::string& note : analysis.notes) all += note + "\n";
  return all;
}

std::string refusal(const std::filesystem::path& log) {
  return message_of([&] { underflow::analyze({log}, {}, {}); });
}

TEST_CASE("tensor shards: the folder and the index itself are the whole checkpoint") {
  const TempFolder folder;
  write_checkpoint(folder);
  for (const std::filesystem::path& log : {folder / ".", folder / kIndex}) {
    const underflow::Analysis found = underflow::analyze({log}, {}, {});
    CHECK(names_of(found) == std::vector<std::string>{"a.weight", "b.weight", "c.weight"});
    CHECK_THAT(notes_of(found), !Catch::Contains("tensors take") && !Catch::Contains("skipped") &&
                                    !Catch::Contains("shards"));
    std::vector<std::string> whole;
    frames::Notes notes;
    for_each_whole_tensor(
        log, {}, [&](const frames::WholeTensor& tensor) { whole.push_back(tensor.name); }, notes);
    CHECK(whole == names_of(found));
  }
}

TEST_CASE("tensor shards: in folders of steps") {
  const TempFolder folder;
  for (const char* step : {"checkpoint-500", "checkpoint-1000"}) {
    write(folder / step / kFirst, {{"a.weight", {1}}});
    folder.write(std::string(step) + "/" + kIndex, index_of({{"a.weight", kFirst}}, 4));
  }
  const underflow::Analysis found = underflow::analyze({folder / "."}, {}, {});
  REQUIRE(found.logs[0].tensors.size() == 1);
  REQUIRE(found.logs[0].tensors[0].per_step.size() == 2);
  CHECK(found.logs[0].tensors[0].per_step[0].step == 500);
  CHECK(found.logs[0].tensors[0].per_step[1].step == 1000);
}

TEST_CASE("tensor shards: what the index names must be there") {
  const TempFolder folder;
  write_checkpoint(folder);
  SECTION("a file") {
    std::filesystem::remove(folder / kSecond);
    for (const std::filesystem::path& log : {folder / ".", folder / kIndex}) {
      CHECK_THAT(refusal(log), Catch::Contains(std::string(kIndex) + ": names the file '" +
                                               kSecond + "', which is missing"));
    }
  }
  SECTION("a tensor") {
    write(folder / kSecond, {{"d.weight", {8}}});
    CHECK_THAT(refusal(folder / "."),
               Catch::Contains(std::string(kSecond) + ": tensor 'c.weight' is missing, but " +
                               kIndex + " names it"));
  }
  SECTION("a file that can be read") {
    folder.write(kSecond, "version https://git-lfs.github.com/spec/v1");
    CHECK_THAT(refusal(folder / "."), Catch::Contains(kSecond));
  }
}

TEST_CASE("tensor shards: what the index does not name is skipped, and said") {
  const TempFolder folder;
  write_checkpoint(folder);
  write(folder / kSecond, {{"c.weight", {8}}, {"x.weight", {9}}});
  write(folder / "consolidated.safetensors", {{"a.weight", {1, 2}}});
  const underflow::Analysis found = underflow::analyze({folder / "."}, {}, {});
  CHECK(names_of(found) == std::vector<std::string>{"a.weight", "b.weight", "c.weight"});
  CHECK(found.logs[0].tensors[0].counts.total == 2);
  CHECK_THAT(
      notes_of(found),
      Catch::Contains(
          "tensor 'x.weight', which model.safetensors.index.json does not name, is skipped") &&
          Catch::Contains("consolidated.safetensors: is named by no index") &&
          Catch::Contains("says that its tensors take 20 bytes, but its files' take 24"));
}

TEST_CASE("tensor shards: several indexes") {
  const TempFolder folder;
  write_checkpoint(folder);
  SECTION("of other tensors") {
    write(folder / "ema-1.safetensors", {{"ema.weight", {3}}});
    folder.write("ema.safetensors.index.json", index_of({{"ema.weight", "ema-1.safetensors"}}, 4));
    CHECK(underflow::analyze({folder / "."}, {}, {}).logs[0].tensors.size() == 4);
  }
  SECTION("of the same tensors in PyTorch's format, whose files need not be there") {
    folder.write("pytorch_model.bin.index.json",
                 index_of({{"a.weight", "pytorch_model-00001-of-00001.bin"}}, 8));
    const underflow::Analysis found = underflow::analyze({folder / "."}, {}, {});
    CHECK(found.logs[0].tensors.size() == 3);
    CHECK_THAT(notes_of(found), Catch::Contains("pytorch_model.bin.index.json: names tensors that "
                                                "model.safetensors.index.json also names"));
  }
  SECTION("of other tensors in the same file") {
    write(folder / kSecond, {{"c.weight", {8}}, {"x.weight", {9}}});
    folder.write("other.safetensors.index.json", index_of({{"x.weight", kSecond}}, 4));
    CHECK_THAT(refusal(folder / "."), Catch::Contains(std::string("names the file '") + kSecond));
  }
  SECTION("of the same tensors in the same format") {
    folder.write("other.safetensors.index.json", index_of({{"a.weight", kFirst}}, 8));
    CHECK_THAT(refusal(folder / "."), Catch::Contains("tensor 'a.weight' is also named by") &&
                                          Catch::Contains("give one of the two as LOG"));
    CHECK(underflow::analyze({folder / kIndex}, {}, {}).logs[0].tensors.size() == 3);
  }
}

TEST_CASE("tensor shards: an index that is damaged or leads away is refused", "[table]") {
  const auto [what, text, message] = GENERATE(table<const char*, const char*, const char*>({
      {"a path upwards", R"({"weight_map": {"w": "../x.safetensors"}})",
       "holds '../x.safetensors' as the file of tensor 'w', expected the name of a file in its "
       "own"},
      {"an absolute path", R"({"weight_map": {"w": "/etc/passwd"}})", "holds '/etc/passwd'"},
      {"a path down", R"({"weight_map": {"w": "a/b.safetensors"}})", "holds 'a/b.safetensors'"},
      {"the folder above", R"({"weight_map": {"w": ".."}})", "holds '..'"},
      {"no name", R"({"weight_map": {"w": ""}})", "holds ''"},
      {"a NUL", R"({"weight_map": {"w": "x\u0000/../../etc"}})", "holds 'x\\x00/../../etc'"},
      {"a number for a file", R"({"weight_map": {"w": 1}})", "holds a number for tensor 'w'"},
      {"an object for a file", R"({"weight_map": {"w": {}}})", "holds an object for tensor 'w'"},
      {"a list", R"({"weight_map": ["w"]})", "holds an array, expected an object of names"},
      {"a tensor twice", R"({"weight_map": {"w": "a", "w": "b"}})", "holds tensor 'w' twice"},
      {"no map", R"({"metadata": {"weight_map": "x"}})", "holds no weight_map"},
      {"a map that is no object", R"({"weight_map": 3})", "holds no weight_map"},
      {"cut short", R"({"weight_map": {"w": "a.saf)", "expected JSON in UTF-8"},
      {"two objects", R"({"weight_map": {}} {})", "holds { at byte 19 of 21, expected JSON"},
  }));
  CAPTURE(what);
  const TempFolder folder;
  const auto path = folder.write("x.index.json", text);
  const std::string refused = message_of([&] { readers::tensors::read_shard_index(path); });
  INFO(refused);
  CHECK(refused.starts_with(path.string() + ": "));
  CHECK_THAT(refused, Catch::Contains(message));
  CHECK(log::printable(refused) == refused);
}

TEST_CASE("tensor shards: whatever else an index holds is passed") {
  const TempFolder folder;
  std::string deep = R"({"weight_map": {"w": "a"}, "metadata": {"total_size": 1e3, "more": )";
  for (int i = 0; i < 100'000; ++i) deep += '[';
  for (int i = 0; i < 100'000; ++i) deep += ']';
  const auto index = readers::tensors::read_shard_index(folder.write("x.index.json", deep + "}}"));
  CHECK(index->total_size == 1000);
  CHECK(index->shards == std::map<std::string, std::set<std::string>>{{"a", {"w"}}});
}

TEST_CASE("tensor folder: one checkpoint in two formats is read once") {
  const TempFolder folder;
  write(folder / "model.safetensors", {{"w", {1}}});
  folder.write("notes.bin", "no archive");
  folder.write("broken.pt", std::string("PK\x03\x04"));
  const underflow::Analysis found = underflow::analyze({folder / "."}, {}, {});
  CHECK(names_of(found) == std::vector<std::string>{"w"});
  CHECK_THAT(notes_of(found), Catch::Contains("broken.pt: is not a ZIP archive") &&
                                  Catch::Contains("the file is skipped") &&
                                  !Catch::Contains("notes.bin"));
}

}  // namespace test_shards
