// SPDX-License-Identifier: Apache-2.0
// Run logs that a crash cut, a disk damaged or somebody made up: notes, never a crash.
#include <nlohmann/json.hpp>

#include <functional>

#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"
#include "log_folder.hpp"

namespace test_run_log_damage {

using namespace halfscope;
using namespace halfscope::log;
using namespace log_test;

/// A log of three steps, each with scalars and one tensor, and its event file's bytes.
struct Small {
  Small() {
    RunLogWriter writer(folder.path(), {});
    for (std::int64_t step = 0; step < 3; ++step) {
      StepScalars scalars;
      scalars.step = step;
      scalars.loss = static_cast<double>(step);
      scalars.learning_rate = 0.1;
      writer.write(scalars);
      writer.write(record("weight_grad/w", step, {1.0f, static_cast<float>(step)}));
    }
    file = event_file(folder.path());
    bytes = bytes_of(file);
  }
  Folder folder;
  fs::path file;
  std::string bytes;
};

void check_step(const StepScalars& scalars) {
  REQUIRE(scalars.loss == static_cast<double>(scalars.step));
  REQUIRE(scalars.learning_rate == 0.1);
}

void check_record(const TensorRecord& read) {
  REQUIRE(read.name == "weight_grad/w");
  REQUIRE(read.table == record(read.name, read.step, {1.0f, static_cast<float>(read.step)}).table);
}

/// Changes the one record of a log, and gives what reading it notes.
std::vector<std::string> notes_after(const std::function<void(proto::Summary&)>& change) {
  const Folder folder;
  { RunLogWriter(folder.path(), {}).write(record("weight/w", 6, {1.0f, 2.0f})); }
  const fs::path file = event_file(folder.path());
  EventReader reader(file);
  static_cast<void>(reader.next());
  proto::Event event = reader.next().value();
  fs::remove(file);
  change(*event.mutable_summary());
  EventWriter(file).write(event);
  const RunLog log(folder.path());
  CHECK(records(log).empty());
  return log.notes();
}

void set_statistics(proto::Summary& summary, const std::string& text) {
  summary.mutable_value(1)->mutable_tensor()->set_string_val(0, text);
}

/// A way a record can be wrong, and what its note says.
struct Nonsense {
  const char* what;
  std::function<void(proto::Summary&)> change;
  std::string part;
};

std::vector<Nonsense> nonsense() {
  const std::string rest =
      R"("source_dtype":"F32","state":"unscaled","scale":1,"mean":0,"sum_squares":0})";
  const auto says = [](const std::string& json) {
    return [json](proto::Summary& summary) { set_statistics(summary, json); };
  };
  return {
      {"no table", [](auto& s) { s.mutable_value(0)->mutable_tensor()->clear_tensor_content(); },
       "ends before"},
      {"part of a word",
       [](auto& s) {
         s.mutable_value(0)->mutable_tensor()->mutable_tensor_content()->push_back(0);
       },
       "within a word"},
      {"another version",
       [](auto& s) { (*s.mutable_value(0)->mutable_tensor()->mutable_tensor_content())[0] = 9; },
       "version is 9"},
      {"other numbers",
       [](auto& s) { s.mutable_value(0)->mutable_tensor()->set_dtype(proto::DT_DOUBLE); }, "int64"},
      {"no statistics", [](auto& s) { s.mutable_value(1)->set_tag("statistics/v"); },
       "no tensor 'statistics/weight/w'"},
      {"statistics are numbers",
       [](auto& s) { s.mutable_value(1)->mutable_tensor()->set_dtype(proto::DT_INT64); },
       "no text"},
      {"a name that is not UTF-8",
       [](auto& s) {
         s.mutable_value(0)->set_tag("binades/\xFF");
         s.mutable_value(1)->set_tag("statistics/\xFF");
       },
       "UTF-8"},
      {"no JSON", says("{"), "statistics"},
      {"no object", says("[]"), "statistics"},
      {"nothing said", says("{}"), "statistics"},
      {"no shape", says("{" + rest), "shape"},
      {"shape of text", says(R"({"shape":["\u001b"],)" + rest), "shape"},
      {"negative size", says(R"({"shape":[-1],)" + rest), "shape"},
  };
}

TEST_CASE("a log cut at any byte keeps all before the cut", "[log][damage]") {
  const Small small;
  std::size_t scalars_before = 0, records_before = 0;
  for (std::size_t size = 0; size <= small.bytes.size(); ++size) {
    put_bytes(small.file, std::string_view(small.bytes).substr(0, size));
    const RunLog log(small.folder.path());
    const std::vector<StepScalars> scalars = log.scalars();
    const std::vector<TensorRecord> read = records(log);
    for (const StepScalars& one : scalars) check_step(one);
    for (const TensorRecord& one : read) check_record(one);
    REQUIRE(scalars.size() >= scalars_before);
    REQUIRE(read.size() >= records_before);
    REQUIRE(log.notes().size() <= 1);
    scalars_before = scalars.size();
    records_before = read.size();
  }
  CHECK(scalars_before == 3);
  CHECK(records_before == 3);
}

TEST_CASE("one wrong byte loses at most one event, and never shows a wrong number",
          "[log][damage]") {
  const Small small;
  for (std::size_t at = 0; at < small.bytes.size(); ++at) {
    std::string wrong = small.bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ (1 << (at % 8)));
    put_bytes(small.file, wrong);
    const RunLog log(small.folder.path());
    const std::vector<StepScalars> scalars = log.scalars();
    const std::vector<TensorRecord> read = records(log);
    for (const StepScalars& one : scalars) check_step(one);
    for (const TensorRecord& one : read) check_record(one);
    CAPTURE(at);
    REQUIRE(scalars.size() + read.size() >= 5);
    REQUIRE(log.notes().size() == 1);
  }
}

TEST_CASE("a record that is whole but says nonsense is named and skipped", "[log][damage]") {
  for (const Nonsense& row : nonsense()) {
    CAPTURE(row.what);
    const std::vector<std::string> notes = notes_after(row.change);
    REQUIRE(notes.size() == 1);
    CAPTURE(notes[0]);
    CHECK(mentions(notes[0], row.part));
    CHECK(mentions(notes[0], "step 6"));
    CHECK(notes[0].find('\x1B') == std::string::npos);
    CHECK(notes[0].find('\n') == std::string::npos);
  }
}

TEST_CASE("each of the statistics is checked", "[log][damage]") {
  const nlohmann::json good = {{"shape", {2}},      {"source_dtype", "F32"}, {"state", "unscaled"},
                               {"scale", 1.0},      {"mean", 0.0},           {"sum_squares", 0.0},
                               {"max_abs", nullptr}};
  struct Row {
    const char* key;
    nlohmann::json value;
  };
  const std::vector<Row> rows = {
      {"source_dtype", "F12"},   {"source_dtype", 5}, {"computed_dtype", "half"},
      {"state", "sometimes"},    {"scale", 0.0},      {"scale", -1.0},
      {"scale", "NaN"},          {"scale", "much"},   {"mean", nullptr},
      {"sum_squares", "\x1B[0m"}};
  for (const Row& row : rows) {
    nlohmann::json wrong = good;
    wrong[row.key] = row.value;
    const std::vector<std::string> notes =
        notes_after([&](proto::Summary& summary) { set_statistics(summary, wrong.dump()); });
    CAPTURE(row.key, row.value.dump());
    REQUIRE(notes.size() == 1);
    CHECK(notes[0].find('\x1B') == std::string::npos);
  }
}

TEST_CASE("a table that would need far more memory than its record is skipped", "[log][damage]") {
  constexpr std::int64_t kCuts = 100'000;
  std::vector<std::int64_t> words = {1, kCuts};
  for (std::int64_t cut = 1; cut <= kCuts; ++cut) words.push_back(cut);
  words.insert(words.end(), {0, 0, 0, 0, 0, 8192, 0, -8192, 0, 1, 0, 2});
  for (const std::int64_t exponent : {-8192, 8192}) {
    words.push_back(exponent);
    words.push_back(1);
    words.insert(words.end(), kCuts + 1, 0);
  }
  const std::vector<std::string> notes = notes_after([&](proto::Summary& summary) {
    proto::TensorProto& tensor = *summary.mutable_value(0)->mutable_tensor();
    tensor.clear_tensor_content();
    for (const std::int64_t word : words) tensor.add_int64_val(word);
  });
  REQUIRE(notes.size() == 1);
  CHECK(mentions(notes[0], "number of cuts is 100000"));
}

TEST_CASE("the last readable record of a step holds", "[log][damage]") {
  const Folder folder;
  {
    RunLogWriter writer(folder.path(), {});
    writer.write(record("weight/w", 0, {1.0f}));
    writer.write(record("weight/w", 0, {2.0f}));
  }
  const fs::path file = event_file(folder.path());
  std::string bytes = bytes_of(file);
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
  put_bytes(file, bytes);
  const RunLog log(folder.path());
  CHECK(log.notes().size() == 1);
  REQUIRE(records(log).size() == 1);
  CHECK(records(log)[0].table == record("weight/w", 0, {1.0f}).table);
}

TEST_CASE("a log that changes while it is read says so", "[log][damage]") {
  const Small small;
  const RunLog log(small.folder.path());
  put_bytes(small.file, small.bytes.substr(0, 40));
  CHECK(mentions(bad_input([&] { records(log); }), "was cut short while it was read"));
}

}  // namespace test_run_log_damage
