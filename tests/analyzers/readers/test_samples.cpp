// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/samples.hpp"

#include <cstring>
#include <string>

#include "analyzers/logs.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "analyzers/whole_tensors.hpp"
#include "catch.hpp"

namespace test_samples {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;
using log::Role;

using Named = std::vector<std::pair<std::string, Values>>;
using Metadata = std::map<std::string, std::string>;

/// Samples one step; each tensor in its own values.
void sample(log::RunLogWriter& writer, std::int64_t step, const Named& tensors,
            const Metadata& metadata = {}) {
  std::vector<log::NamedTensor> named;
  for (const auto& [name, values] : tensors) {
    named.push_back({name, {values.size()}, test::view_of(values)});
  }
  writer.write_sample(step, named, metadata);
}

/// "step name[count]/scale" of every tensor visited.
std::vector<std::string> visited(const std::filesystem::path& log,
                                 const frames::Selection& selection = {}) {
  std::vector<std::string> seen;
  frames::Notes notes;
  const auto visit = [&](const frames::WholeTensor& t) {
    seen.push_back(std::to_string(t.step) + " " + t.name + "[" + std::to_string(t.view.count) +
                   "]/" + std::to_string(static_cast<int>(t.scale)));
  };
  for_each_whole_tensor(log, selection, visit, notes);
  return seen;
}

using Sampled = std::vector<std::string>;

TEST_CASE("whole tensors come step by step, with their values and roles", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    sample(writer, 10, {{"weight/b", {1, 2}}, {"weight/a", {3}}});
    sample(writer, 2, {{"activation/x", {4, 5, 6}}});
  }
  CHECK(visited(folder / "run") ==
        Sampled{"2 activation/x[3]/1", "10 weight/a[1]/1", "10 weight/b[2]/1"});
  frames::Selection some;
  some.first_step = 3;
  some.tensor_glob = "b";
  CHECK(visited(folder / "run", some) == Sampled{"10 weight/b[2]/1"});
  frames::Notes notes;
  float value = 0;
  std::uint64_t last = 0, all = 0;
  some.first_step = 0;
  some.tensor_glob = "weight/a";
  some.roles = {{"weight/a", Role::master_weight}};
  for_each_whole_tensor(
      folder / "run", some,
      [&](const frames::WholeTensor& t) {
        std::memcpy(&value, t.view.data, sizeof value);
        CHECK(t.role == Role::master_weight);
      },
      notes, [&](std::uint64_t done, std::uint64_t of) { last = done, all = of; });
  CHECK(value == 3);
  CHECK(last == all);
  CHECK(all > 0);
}

TEST_CASE("a log without whole tensors has none to visit", "[table]") {
  const TempFolder folder;
  { log::RunLogWriter(folder / "run", {}).write(record_of("weight/w", 0, {1})); }
  CHECK(visited(folder / "run").empty());
}

TEST_CASE("the scale of a sample: record, metadata, scalars, --recorded-scale", "[table]") {
  const TempFolder folder;
  log::Manifest manifest;
  manifest.gradients = log::ScaleState::scaled;
  {
    log::RunLogWriter writer(folder / "run", manifest);
    writer.write(record_of("weight_grad/a", 0, {1}, 8));
    const Named tensors = {{"activation_grad/x", {1}}, {"weight/a", {1}}, {"weight_grad/a", {1}}};
    sample(writer, 0, tensors, {{"scale", "16"}, {"activation_gradients", "unscaled"}});
    sample(writer, 1, tensors, {{"scale", "16"}, {"gradients", "unscaled"}});
    log::StepScalars scalars;
    scalars.step = 2;
    scalars.loss_scale = 32;
    writer.write(scalars);
    sample(writer, 2, tensors);
  }
  const Sampled wanted = {"0 activation_grad/x[1]/1",  "0 weight/a[1]/1", "0 weight_grad/a[1]/8",
                          "1 activation_grad/x[1]/1",  "1 weight/a[1]/1", "1 weight_grad/a[1]/1",
                          "2 activation_grad/x[1]/32", "2 weight/a[1]/1", "2 weight_grad/a[1]/32"};
  CHECK(visited(folder / "run") == wanted);
  {
    log::RunLogWriter writer(folder / "lost", manifest);
    sample(writer, 4, {{"weight_grad/a", {1}}});
  }
  const std::string refused = message_of([&] { visited(folder / "lost"); });
  CHECK(refused.find("tensor 'weight_grad/a', step 4: is recorded as scaled, but without its loss "
                     "scale; give it with --recorded-scale S") != std::string::npos);
  frames::Selection told;
  told.recorded_scale = 64;
  CHECK(visited(folder / "lost", told) == Sampled{"4 weight_grad/a[1]/64"});
}

TEST_CASE("of several ranks each has its part of what is sharded", "[table]") {
  const TempFolder folder;
  log::Manifest manifest;
  manifest.sharded = {Role::weight};
  manifest.world_size = 2;
  for (int rank = 0; rank < 2; ++rank) {
    manifest.rank = rank;
    log::RunLogWriter writer(folder / ("run/rank-000" + std::to_string(rank)), manifest);
    const Values part(static_cast<std::size_t>(rank) + 1, 1.0f);
    sample(writer, 5, {{"activation/x", part}, {"weight/w", part}});
  }
  CHECK(visited(folder / "run") ==
        Sampled{"5 activation/x[1]/1", "5 weight/w[1]/1", "5 weight/w[2]/1"});
}

TEST_CASE("files of tensors, and folders of them", "[table]") {
  const TempFolder folder;
  const auto file = write_tensors(folder, {{"weight/a", {1, 2}}, {"weight_grad/a", {1}}});
  CHECK(visited(file) == Sampled{"0 weight/a[2]/1", "0 weight_grad/a[1]/1"});
  frames::Selection later;
  later.first_step = 1;
  CHECK(visited(file, later).empty());

  std::filesystem::create_directory(folder / "many");
  const Values one = {1}, two = {1, 2};
  const auto write = [&](const char* name, const char* tensor, const Values& values) {
    log::write_safetensors(folder / "many" / name,
                           {{tensor, {values.size()}, test::view_of(values)}});
  };
  write("g_step-1.safetensors", "weight_grad/a", one);
  write("w_step-1.safetensors", "weight/a", two);
  // Parts of one tensor stay apart.
  write("shard-0_step-2.safetensors", "weight/a", one);
  write("shard-1_step-2.safetensors", "weight/a", two);
  CHECK(visited(folder / "many") ==
        Sampled{"1 weight_grad/a[1]/1", "1 weight/a[2]/1", "2 weight/a[1]/1", "2 weight/a[2]/1"});
  // Files of one step are one step: pairs may lie in two files.
  std::vector<std::size_t> names;
  frames::Notes notes;
  readers::for_each_whole_step(
      folder / "many", {},
      [&](const frames::WholeStep& step) { names.push_back(step.tensors->names().size()); }, notes);
  CHECK(names == std::vector<std::size_t>{2, 1, 1});
}

TEST_CASE("a note is added once", "[table]") {
  frames::Notes notes = {"a", "a"};
  notes.add("a");
  notes.add("b");
  CHECK(notes == frames::Notes{"a", "b"});
}

TEST_CASE("a run log of samples alone: its tables are made of them", "[table]") {
  const TempFolder folder;
  log::Manifest manifest;
  manifest.gradients = log::ScaleState::scaled;
  const Values scaled = {0x1p-20f, 8.0f, 0}, weights = {1, 2};
  {
    log::RunLogWriter alone(folder / "alone", manifest), tables(folder / "tables", manifest);
    for (log::RunLogWriter* const writer : {&alone, &tables}) {
      log::StepScalars scalars;
      scalars.step = 4;
      scalars.loss_scale = 1024.0;
      writer->write(scalars);
      sample(*writer, 4, {{"weight_grad/w", scaled}, {"weight/w", weights}});
    }
    tables.write(record_of("weight_grad/w", 4, scaled, 1024));
    tables.write(record_of("weight/w", 4, weights));
  }
  frames::Selection selection;
  const underflow::Analysis made = underflow::analyze({folder / "alone"}, {}, selection);
  const underflow::Analysis recorded = underflow::analyze({folder / "tables"}, {}, selection);
  REQUIRE(made.logs[0].tensors.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const underflow::TensorFindings &of_made = made.logs[0].tensors[i],
                                    &of_recorded = recorded.logs[0].tensors[i];
    CHECK(of_made.name == of_recorded.name);
    CHECK(of_made.loss_scaled == of_recorded.loss_scaled);
    CHECK(of_made.tables[0].table == of_recorded.tables[0].table);
    CHECK(of_made.per_step[0].scale == of_recorded.per_step[0].scale);
    CHECK(of_made.counts.classes == of_recorded.counts.classes);
  }
  CHECK(recorded.notes.empty());
  REQUIRE(made.notes.size() == 1);
  CHECK(made.notes[0].text().find(
            "holds sampled tensors but no histograms; histograms are made from the tensors") !=
        std::string::npos);
  selection.tensor_glob = "weight/*";
  CHECK(underflow::analyze({folder / "alone"}, {}, selection).logs[0].tensors.size() == 1);
  selection.first_step = 5;
  CHECK(message_of([&] {
          underflow::analyze({folder / "alone"}, {}, selection);
        }).find("no recorded step is selected by --step; it has 1 step, 4") != std::string::npos);
}

}  // namespace test_samples
