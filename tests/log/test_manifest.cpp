// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "halfscope/log/manifest.hpp"

#include "log_folder.hpp"

namespace test_manifest {

using namespace halfscope;
using namespace halfscope::log;
using namespace log_test;

TEST_CASE("a manifest comes back as it was", "[log][manifest]") {
  const Folder folder;
  Manifest manifest;
  manifest.gradients = ScaleState::scaled;
  manifest.sharded = {Role::weight_grad, Role::optimizer_state};
  manifest.loss_dtype = Dtype::bf16;
  manifest.rank = 3;
  manifest.world_size = 8;
  *manifest.about = {{"network", "LeNet \xC3\xA9 \"quoted\"\n"}, {"data", {{"seed", 42}}}};
  { RunLogWriter writer(folder / "deep/run", manifest); }
  const Manifest read = RunLog(folder / "deep/run").manifest();
  CHECK(read.schema == kSchema);
  CHECK(read.gradients == ScaleState::scaled);
  CHECK(read.sharded == manifest.sharded);
  CHECK(read.loss_dtype == Dtype::bf16);
  CHECK(read.rank == 3);
  CHECK(read.world_size == 8);
  CHECK(read.about->at("halfscope").is_string());
  nlohmann::json about = *read.about;
  about.erase("halfscope");
  CHECK(about == *manifest.about);
}

TEST_CASE("what only informs lies beside the fields, at the top level", "[log][manifest]") {
  const Folder folder;
  Manifest manifest;
  *manifest.about = {{"network", "tiny"}};
  write_manifest(folder / "run.json", manifest);
  const auto json = nlohmann::json::parse(bytes_of(folder / "run.json"));
  CHECK(json.at("schema") == 1);
  CHECK(json.at("gradients") == "unscaled");
  CHECK(json.at("network") == "tiny");
  CHECK_FALSE(json.contains("loss_dtype"));
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    CHECK(entry.path().filename() == "run.json");  // nothing is left over
  }
  *manifest.about = {{"rank", 1}};
  CHECK(mentions(bad_input([&] { write_manifest(folder / "run.json", manifest); }), "'rank'"));
  *manifest.about = {{"network", "\xFF"}};
  CHECK(mentions(bad_input([&] { write_manifest(folder / "run.json", manifest); }), "UTF-8"));
}

TEST_CASE("the least a manifest may say", "[log][manifest]") {
  const Folder folder;
  put_bytes(folder / "run.json", R"({"schema": 1, "gradients": "unscaled"})");
  const RunLog log(folder.path());
  CHECK(log.manifest().gradients == ScaleState::unscaled);
  CHECK(log.manifest().sharded.empty());
  CHECK_FALSE(log.manifest().loss_dtype);
  CHECK(log.manifest().world_size == 1);
  CHECK(log.scalars().empty());
  CHECK(log.record_count() == 0);
  CHECK(log.samples().empty());
}

TEST_CASE("a manifest that cannot be used says what is wrong", "[log][manifest]") {
  struct Row {
    const char* what;
    std::string json;
    std::string part;
  };
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const std::vector<Row> rows = {
      {"no JSON", "{\"schema\": 1,", "no JSON object"},
      {"empty", "", "no JSON object"},
      {"no object", "[1]", "no JSON object"},
      {"deep", "{\"schema\": " + deep + "}", "nests"},
      {"no schema", R"({"gradients": "scaled"})", "'schema' is missing"},
      {"schema is text", R"({"schema": "1", "gradients": "scaled"})", "'schema' is \"1\""},
      {"schema 0", R"({"schema": 0, "gradients": "scaled"})", "'schema' is 0"},
      {"schema 2^64 - 1", R"({"schema": 18446744073709551615})", "'schema' is 1844"},
      {"no gradients", R"({"schema": 1})", "'gradients' is missing"},
      {"other gradients", R"({"schema": 1, "gradients": "\u001b[31m"})", "'gradients' is"},
      {"sharded", R"({"schema": 1, "gradients": "scaled", "sharded": ["grad"]})", "'sharded'"},
      {"sharded", R"({"schema": 1, "gradients": "scaled", "sharded": 4})", "'sharded' is 4"},
      {"loss_dtype", R"({"schema": 1, "gradients": "scaled", "loss_dtype": "F33"})", "\"F33\""},
      {"rank", R"({"schema": 1, "gradients": "scaled", "rank": -1})", "'rank' is -1"},
      {"world_size", R"({"schema": 1, "gradients": "scaled", "world_size": 0.5})", "world_size"},
  };
  for (const Row& row : rows) {
    const Folder folder;
    put_bytes(folder / "run.json", row.json);
    CAPTURE(row.what);
    const std::string message = bad_input([&] { RunLog log(folder.path()); });
    CAPTURE(message);
    CHECK(mentions(message, "run.json"));
    CHECK(mentions(message, row.part));
    CHECK(message.find('\x1B') == std::string::npos);
    CHECK(message.size() < 500);
  }
}

TEST_CASE("a log of a newer schema is refused with both versions and the way out",
          "[log][manifest]") {
  const Folder folder;
  // Other keys may mean something else in that schema: only the version is looked at.
  put_bytes(folder / "run.json", R"({"schema": 2, "halfscope": "9.8", "gradients": 17})");
  const std::string message = bad_input([&] { RunLog log(folder.path()); });
  CHECK(mentions(message, "schema 2"));
  CHECK(mentions(message, "halfscope 9.8"));
  CHECK(mentions(message, "schema 1 to 1"));
  CHECK(mentions(message, "newer"));
}

TEST_CASE("a folder laid out as a run log but without its manifest", "[log][manifest]") {
  const Folder folder;
  CHECK_FALSE(RunLog::is_one(folder.path()));
  CHECK_FALSE(RunLog::is_one(folder / "missing"));
  { RunLogWriter writer(folder / "run", {}); }
  CHECK(RunLog::is_one(folder / "run"));
  fs::remove(folder / "run/run.json");
  std::string message = bad_input([&] { RunLog::is_one(folder / "run"); });
  CHECK(mentions(message, "no run.json"));
  CHECK(mentions(message, "event files"));
  CHECK(mentions(message, (folder / "run").string()));
  CHECK(mentions(bad_input([&] { RunLog log(folder / "run"); }), "no run.json"));

  fs::create_directories(folder / "samples/tensors");
  CHECK_FALSE(RunLog::is_one(folder / "samples"));
  put_bytes(folder / "samples/tensors/step-000001.safetensors", "x");
  message = bad_input([&] { RunLog::is_one(folder / "samples"); });
  CHECK(mentions(message, "sampled tensors"));
  CHECK(mentions(bad_input([&] { RunLog log(folder / "missing"); }), "missing"));
}

TEST_CASE("a log is never written over", "[log][manifest]") {
  const Folder folder;
  { RunLogWriter writer(folder.path(), {}); }
  const std::string before = bytes_of(folder / "run.json");
  Manifest other;
  other.rank = 5;
  const std::string message = bad_input([&] { RunLogWriter writer(folder.path(), other); });
  CHECK(mentions(message, folder.path().string()));
  CHECK(mentions(message, "another folder"));
  CHECK(bytes_of(folder / "run.json") == before);

  put_bytes(folder / "file", "");
  CHECK(mentions(bad_input([&] { RunLogWriter writer(folder / "file", {}); }), "file"));
}

TEST_CASE("ranks are folders of their own", "[log][manifest]") {
  const Folder folder;
  CHECK(rank_folders(folder.path()).empty());
  CHECK(rank_folders(folder / "missing").empty());
  for (const int rank : {10000, 0, 2}) {
    const std::string digits = std::to_string(rank);
    const std::string name =
        "rank-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
    Manifest manifest;
    manifest.rank = rank;
    RunLogWriter writer(folder / name, manifest);
  }
  fs::create_directories(folder / "rank-1");
  fs::create_directories(folder / "rank-0x01");
  put_bytes(folder / "rank-0003", "a file");
  CHECK(rank_folders(folder.path()) ==
        std::vector<fs::path>{folder / "rank-0000", folder / "rank-0002", folder / "rank-10000"});
}

}  // namespace test_manifest
