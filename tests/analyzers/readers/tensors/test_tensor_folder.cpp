// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/tensor_folder.hpp"

#include "analyzers/logs.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"

namespace test_tensor_folder {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

void write(const std::filesystem::path& path, const std::string& name, const Values& values,
           const std::map<std::string, std::string>& metadata = {}) {
  std::filesystem::create_directories(path.parent_path());
  log::write_safetensors(path, {{name, {values.size()}, view_of(values)}}, metadata);
}

std::vector<std::int64_t> steps_of(const underflow::TensorFindings& tensor) {
  std::vector<std::int64_t> steps;
  for (const underflow::StepFindings& step : tensor.per_step) steps.push_back(step.step);
  return steps;
}

std::string notes_of(const underflow::Analysis& analysis) {
  std::string all;
  for (const std::string& note : analysis.notes) all += note + "\n";
  return all;
}

TEST_CASE("tensor folder: shards and steps make one log") {
  const TempFolder folder;
  write(folder / "step-000002.safetensors", "weight_grad/w", {1, 0});
  write(folder / "step_1-a.safetensors", "weight_grad/w", {1, 0x1p-30f});
  write(folder / "step_1-b.safetensors", "weight_grad/w", {0, 0, 3});
  write(folder / "checkpoint-10" / "part.safetensors", "weight_grad/w", {8});
  write(folder / "checkpoint-10" / "step-11.safetensors", "weight_grad/w", {8});
  write(folder / "zz.safetensors", "weight_grad/w", {5}, {{"step", "7"}});
  write(folder / "elsewhere" / "step-3.safetensors", "weight_grad/w", {9});
  folder.write("readme.txt", "no tensors");
  const underflow::Analysis found = underflow::analyze({folder / "."}, {}, {});
  REQUIRE(found.logs[0].tensors.size() == 1);
  const underflow::TensorFindings& t = found.logs[0].tensors[0];
  CHECK(steps_of(t) == std::vector<std::int64_t>{1, 2, 7, 10, 11});
  CHECK(t.per_step[0].counts.total == 5);
  CHECK(t.per_step[0].counts.zero == 2);
  CHECK(t.per_step[0].counts.classes.flushed_to_zero == Interval(1));
  CHECK(t.per_step[0].max_abs == 3.0);
  CHECK(t.per_step[2].max_abs == 5.0);
  const std::string notes = notes_of(found);
  CHECK_THAT(notes, Catch::Contains("treated as shards") && Catch::Contains("has no manifest"));
  CHECK(notes.find("treated as shards") == notes.rfind("treated as shards"));
}

TEST_CASE("tensor folder: what links lead to twice is read once") {
  const TempFolder folder;
  write(folder / "log" / "step-2.safetensors", "weight_grad/w", {1, 0});
  write(folder / "log" / "checkpoint-3" / "a.safetensors", "weight_grad/w", {8});
  write(folder / "blob", "weight_grad/w", {1, 2, 3});
  std::filesystem::create_directory_symlink(".", folder / "log" / "checkpoint-1");
  std::filesystem::create_directory_symlink("checkpoint-3", folder / "log" / "checkpoint-0");
  std::filesystem::create_symlink("step-2.safetensors", folder / "log" / "latest.safetensors");
  std::filesystem::create_symlink("../blob", folder / "log" / "step-7.safetensors");
  const underflow::Analysis found = underflow::analyze({folder / "log"}, {}, {});
  REQUIRE(found.logs[0].tensors.size() == 1);
  CHECK(steps_of(found.logs[0].tensors[0]) == std::vector<std::int64_t>{2, 3, 7});
  CHECK(found.logs[0].tensors[0].counts.total == 6);
  // checkpoint-0's a, and checkpoint-1's latest, step-2 and step-7, and latest.
  CHECK(notes_of(found).find("checkpoint-0/a.safetensors' and 4 more lead to files that are "
                             "already read, and are skipped") != std::string::npos);
}

TEST_CASE("tensor folder: steps are selected before files are read") {
  const TempFolder folder;
  write(folder / "step-1.safetensors", "weight_grad/w", {1});
  write(folder / "step-2.safetensors", "weight_grad/w", {2});
  frames::Selection selection;
  selection.first_step = 2;
  const underflow::Analysis found = underflow::analyze({folder / "."}, {}, selection);
  CHECK(steps_of(found.logs[0].tensors[0]) == std::vector<std::int64_t>{2});
}

TEST_CASE("tensor folder: a role in one file is looked for in all") {
  const TempFolder folder;
  write(folder / "step-1.safetensors", "weight_grad/w", {1});
  write(folder / "step-2.safetensors", "w", {2});
  const underflow::Analysis found = underflow::analyze({folder / "."}, {}, {});
  REQUIRE(found.logs[0].tensors.size() == 2);
  CHECK(found.logs[0].tensors[1].role_source == frames::RoleSource::none);
  const TempFolder plain;
  write(plain / "step-2.safetensors", "w", {2});
  CHECK(underflow::analyze({plain / "."}, {}, {}).logs[0].tensors[0].role_source ==
        frames::RoleSource::assumed);
}

TEST_CASE("tensor folder: gradients that the metadata calls scaled are unscaled") {
  const TempFolder folder;
  write(folder / "step-1.safetensors", "weight_grad/w", {1024},
        {{"gradients", "scaled"}, {"scale", "1024"}});
  write(folder / "step-2.safetensors", "weight_grad/w", {4});
  const underflow::Analysis found = underflow::analyze({folder / "."}, {}, {});
  CHECK(found.logs[0].tensors[0].per_step[0].max_abs == 1.0);
  CHECK(found.logs[0].tensors[0].per_step[1].max_abs == 4.0);
  write(folder / "step-3.safetensors", "weight_grad/w", {1}, {{"gradients", "scaled"}});
  CHECK_THAT(message_of([&] { underflow::analyze({folder / "."}, {}, {}); }),
             Catch::Contains("step-3.safetensors") && Catch::Contains("--recorded-scale"));
}

TEST_CASE("tensor folder: shards that carry different scales are refused") {
  const TempFolder folder;
  write(folder / "step-1-a.safetensors", "weight_grad/w", {1},
        {{"gradients", "scaled"}, {"scale", "2"}});
  write(folder / "step-1-b.safetensors", "weight_grad/w", {1},
        {{"gradients", "scaled"}, {"scale", "4"}});
  CHECK_THAT(message_of([&] { underflow::analyze({folder / "."}, {}, {}); }),
             Catch::Contains("step-1-b.safetensors: tensor 'weight_grad/w', step 1"));
}

TEST_CASE("tensor folder: of several damaged files the first by name is told of") {
  const TempFolder folder;
  for (const char* name : {"step-1.npz", "step-2.npz", "step-3.npz"})
    folder.write(name, "PK\x03\x04");
  CHECK_THAT(message_of([&] { underflow::analyze({folder / "."}, {}, {}); }),
             Catch::Contains("step-1.npz"));
}

TEST_CASE("tensor folder: where nothing is understood, what is wanted is said") {
  const TempFolder folder;
  folder.write("notes.txt", "text");
  CHECK_THAT(message_of([&] { underflow::analyze({folder / "."}, {}, {}); }),
             Catch::Contains("holds no file that Halfscope can read"));
}

}  // namespace test_tensor_folder
