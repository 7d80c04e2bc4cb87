// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_log.hpp"

#include <fmt/format.h>

#include <fstream>

#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_survey.hpp"
#include "analyzers/readers/console/console_words.hpp"
#include "analyzers/readers/kinds.hpp"
#include "catch.hpp"
#include "halfscope/log/safetensors.hpp"
#include "temp_folder.hpp"

namespace halfscope::analyzers::readers::test_console_log {
namespace {

namespace fs = std::filesystem;
using analyzers::frames::Gap;

/// What a log's scalars and skipped steps are, and what was said.
struct Read {
  std::map<std::int64_t, log::StepScalars> scalars;
  std::vector<analyzers::frames::SkippedSteps> skips;
  std::vector<analyzers::frames::LogKind> kinds;
  analyzers::frames::Notes notes;

  explicit Read(const fs::path& log, const analyzers::frames::Selection& selection = {}) {
    analyzers::frames::Visitor visit;
    visit.frame = [](analyzers::frames::Frame&&) {};
    visit.scalars = [this](const log::StepScalars& s) { scalars[s.step] = s; };
    visit.skipped = [this](const analyzers::frames::SkippedSteps& s) { skips.push_back(s); };
    visit.kind = [this](const analyzers::frames::LogKind& kind) { kinds.push_back(kind); };
    for_each_frame(log, selection, visit, notes, {});
  }
  std::optional<double> scale(std::int64_t step) const {
    return scalars.count(step) ? scalars.at(step).loss_scale : std::nullopt;
  }
  std::optional<bool> skipped(std::int64_t step) const {
    return scalars.count(step) ? scalars.at(step).found_inf : std::nullopt;
  }
  bool says(const std::string& part) const {
    const auto has = [&](const std::string& text) { return text.find(part) != std::string::npos; };
    return std::ranges::any_of(notes, has) || std::ranges::any_of(kinds, [&](const auto& kind) {
             return std::ranges::any_of(kind.remarks, has);
           });
  }
};

fs::path write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

TEST_CASE("many lines are seen one after the other, each as it reads alone") {
  // More than two batches; colours, progress bars' parts and messages of two ranks in one line.
  std::vector<std::string> texts;
  for (int i = 1; i <= 10'000; ++i) {
    texts.push_back(fmt::format("iteration {:8d}/ 20000 | loss scale: {} |", i, 1024 * (i % 5)));
    if (i % 7 == 0) texts.back() = "\x1b[32m[INFO]\x1b[0m " + texts.back();
    if (i % 11 == 0) texts.back() += "\r" + texts.back();
    if (i % 13 == 0)
      texts.back() =
          "Gradient overflow.  Skipping step, loss scaler 0 reducing "
          "loss scale to 32768.0Gradient overflow.  Skipping step, loss "
          "scaler 0 reducing loss scale to 16384.0";
  }
  const test::TempFolder folder;
  const fs::path file = write(folder / "out.log", fmt::format("{}", fmt::join(texts, "\n")));
  std::vector<std::string> seen, wanted;
  const auto shown = [](const console::ConsoleLine& line, std::uint64_t number, bool cut) {
    return fmt::format("{} {} {} {} {}", number, cut, line.periodic ? line.periodic->steps : -1,
                       line.scalars.loss_scale.value_or(-1),
                       line.overflow ? line.overflow->next.value_or(-1) : -1);
  };
  console::for_each_console_line(
      log::OpenPath(file), console::wrapping_in(file),
      [&](const console::ConsoleLine& line, std::uint64_t number, bool cut) {
        seen.push_back(shown(line, number, cut));
        return true;
      },
      {}, 0, 0);
  std::string buffer;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    console::for_each_part(texts[i], [&](std::string_view part) {
      const std::string plain(console::without_colours(part, buffer));
      for (const std::string_view message : console::messages_in(plain)) {
        wanted.push_back(shown(console::console_line(message), i + 1, i + 1 == texts.size()));
      }
    });
  }
  CHECK(seen.size() > 10'000);
  CHECK(seen == wanted);
}

TEST_CASE("what a safetensors file's header says is no console log") {
  const test::TempFolder folder;
  const std::string message = "OVERFLOW! Skipping step. Attempted loss scale: 8, reducing to 4";
  const std::vector<float> values = {1, 2};
  log::write_safetensors(
      folder / "w.safetensors",
      {{"weight_grad/w", {2}, {Dtype::f32, reinterpret_cast<const std::byte*>(values.data()), 2}}},
      {{"note", message}});
  CHECK_FALSE(console::is_console_log(log::OpenPath(folder / "w.safetensors")));
  const std::string zeros(8, '\0');  // as a log has that was emptied while it was written
  const fs::path log = write(folder / "out.log", zeros + "{" + message + "\n");
  CHECK(console::is_console_log(log::OpenPath(log)));
}

TEST_CASE("overflow lines of each program") {
  struct Row {
    const char* line;
    std::optional<double> attempted;
    double next;
    std::optional<int> rank;
  };
  const Row rows[] = {
      {"[2023-10-31 07:15:50,880] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! "
       "Rank 0 Skipping step. Attempted loss scale: 16384, reducing to 8192",
       16384, 8192, 0},
      {"[loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted "
       "loss scale: 131072, but hysteresis is 2. Reducing hysteresis to 1",
       131072, 131072, 0},
      {"[deepscale] OVERFLOW! Rank 3 Skipping step. Attempted loss scale: 262144, reducing to "
       "131072.0",
       262144, 131072, 3},
      {"OVERFLOW! Skipping step. Attempted loss scale: 4294967296, reducing to 2147483648.0",
       4294967296.0, 2147483648.0, std::nullopt},
      {"[unfused_optimizer.py:207:step] [deepspeed] fp16 dynamic loss scale overflow! Skipping "
       "step. Attempted loss scale: 65536.0, reducing to 32768.0",
       65536, 32768, std::nullopt},
      {"[logging.py:96:log_dist] [Rank 0] Overflow detected. Skipping step. Attempted loss scale: "
       "65536, reducing to 32768.0",
       65536, 32768, 0},
      {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
       std::nullopt, 32768, std::nullopt},
      {"[1,2]<stdout>:Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to "
       "4.76837158203125e-07",
       std::nullopt, 4.76837158203125e-07, 2},
      {"[rank: 3] Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 8.0",
       std::nullopt, 8, 3},
      {" 12: Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 8.0",
       std::nullopt, 8, 12},
      {"2021-03-08 12:33:12 | INFO | fairseq.trainer | NOTE: gradient overflow detected, ignoring "
       "gradient, setting loss scale to: 2.0",
       std::nullopt, 2, std::nullopt},
      {"WARNING: overflow detected, setting loss scale to: 64.0", std::nullopt, 64, std::nullopt}};
  for (const Row& row : rows) {
    INFO(row.line);
    const auto found = console::console_line(row.line).overflow;
    REQUIRE(found);
    CHECK(found->attempted == row.attempted);
    CHECK(found->next == row.next);
    CHECK(found->rank == row.rank);
  }
}

TEST_CASE("other lines tell nothing") {
  for (const char* line :
       {"", "loss: 3.2", "overflow-x: hidden", "Gradient overflow.", "step=3",
        "step=, skipped=", "Attempted loss scale: , reducing to", "footstep=3, skipped=2",
        "Stack overflow detected", "Gradient overflow. reducing loss scale to info",
        "iteration 5 of 10", "OVERFLOW! Attempted loss scale: 1e, reducing to x"}) {
    INFO(line);
    CHECK_FALSE(console::console_line(line).any());
  }
}

TEST_CASE("periodic lines") {
  auto found = console::console_line(
      "[2024-04-04 09:10:13,619] [INFO] [logging.py:96:log_dist] [Rank 0] step=20, skipped=3, "
      "lr=[0.0003, 0.0001], mom=[(0.9, 0.999)]");
  REQUIRE(found.periodic);
  CHECK(found.periodic->steps == 20);
  CHECK(found.periodic->skipped == 3);
  CHECK_FALSE(found.periodic->of_interval);
  CHECK(found.scalars.learning_rate == 0.0003);
  found = console::console_line(
      " [2024-10-16 04:23:00] iteration        2/  500000 | consumed samples:          256 | "
      "elapsed time per iteration (ms): 1811.8 | learning rate: 4.000000E-07 | global batch size:  "
      " 128 | lm loss: 1.177651E+01 | loss scale: 32768.0 | grad norm: 0.493 | number of skipped "
      "iterations:   1 | number of nan iterations:   0 |");
  REQUIRE(found.periodic);
  CHECK(found.periodic->steps == 2);
  CHECK(found.periodic->skipped == 1);
  CHECK(found.periodic->of_interval);
  CHECK(found.scalars.loss_scale == 32768);
  CHECK(found.scalars.loss == 11.77651);
  CHECK(found.scalars.learning_rate == 4e-7);
  CHECK(found.scalars.gradient_norm == 0.493);
  CHECK(found.scalars.nan_iterations == 0);
}

std::string deepspeed(double from, double to) {
  return "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: " +
         std::to_string(static_cast<long>(from)) + ", reducing to " +
         std::to_string(static_cast<long>(to)) + "\n";
}

TEST_CASE("a skipped step has its number where lines leave no choice") {
  const test::TempFolder folder;
  const Read read(write(folder / "out.log",
                        deepspeed(65536, 32768) + "step=1, skipped=1, lr=[0.1], mom=[0.9]\n" +
                            "step=2, skipped=1, lr=[0.1], mom=[0.9]\n" + "50%|###  | 3/6\r" +
                            deepspeed(32768, 16384) + deepspeed(16384, 8192) +
                            "step=4, skipped=3, lr=[0.1], mom=[0.9]\n" + deepspeed(8192, 4096) +
                            "step=14, skipped=4, lr=[0.2], mom=[0.9]\n" + deepspeed(4096, 2048)));
  CHECK(read.skipped(1) == true);
  CHECK(read.scale(1) == 65536);
  CHECK(read.skipped(2) == false);
  CHECK(read.scale(2) == 32768);
  CHECK(read.skipped(3) == true);
  CHECK(read.skipped(4) == true);
  CHECK(read.scale(4) == 16384);
  CHECK(read.scalars.at(14).learning_rate == 0.2);
  REQUIRE(read.skips.size() == 2);
  CHECK(read.skips[0].first == 5);
  CHECK(read.skips[0].last == 14);
  CHECK(read.skips[0].count == 1);
  CHECK(read.skips[0].scale_from == 8192);
  CHECK(read.skips[0].scale_to == 4096);
  CHECK(read.skips[1].first == 15);
  CHECK(read.skips[1].last == std::nullopt);
  REQUIRE(read.kinds.size() == 1);
  CHECK(read.kinds[0].gaps == std::vector<Gap>{Gap::tensors});  // the skips tell where they lie
}

TEST_CASE("overflows that name their iteration have its step") {
  const test::TempFolder folder;
  const std::string two =  // of two ranks into one log
      "[unfused_optimizer.py:281:_update_scale] Grad overflow on iteration: 4\n"
      "[unfused_optimizer.py:281:_update_scale] Grad overflow on iteration: 4\n"
      "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 65536.0, "
      "reducing to 32768.0\n"
      "[deepspeed] fp16 dynamic loss scale overflow! Skipping step. Attempted loss scale: 65536.0, "
      "reducing to 32768.0\n";
  const Read read(write(folder / "out.log", two));
  CHECK(read.skipped(5) == true);
  CHECK(read.scale(5) == 65536);
  CHECK(read.scale(6) == 32768);
  CHECK(read.skips.empty());
  CHECK(read.kinds[0].gaps == std::vector<Gap>{Gap::tensors});
}

TEST_CASE("where no line tells a step overflows are numbered") {
  const test::TempFolder folder;
  const std::string apex =
      "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to ";
  const Read read(write(folder / "out.log", "Selected optimization level O1\n" + apex +
                                                "65536.0\n" + apex + "32768.0\n" + "loss 3.1\n" +
                                                apex + "16384.0\n" + apex + "16384.0\n"));
  CHECK(read.skipped(0) == true);
  CHECK(read.scale(0) == std::nullopt);
  CHECK(read.scale(2) == 32768);
  CHECK(read.scale(4) == 16384);
  CHECK(read.skipped(4) == std::nullopt);
  CHECK(read.kinds[0].gaps == std::vector<Gap>{Gap::tensors, Gap::steps});
}

TEST_CASE("of several ranks one is counted") {
  const test::TempFolder folder;
  const std::string line =
      "OVERFLOW! Rank 1 Skipping step. Attempted loss scale: 8, reducing to 4\n";
  std::string other = line;
  other.replace(other.find("Rank 1"), 6, "Rank 0");
  const Read read(write(folder / "out.log", line + other + line + other));
  CHECK(read.skipped(1) == true);
  CHECK(read.skipped(2) == std::nullopt);
  CHECK(read.says("2 lines of other ranks than 1"));
}

TEST_CASE("two engines whose messages continue two scales in turn are two logs") {
  const test::TempFolder folder;
  std::string text;
  for (int scale = 65536; scale > 2048; scale /= 2) {
    text += deepspeed(scale, scale / 2) + "loss\n" + deepspeed(scale / 16, scale / 32) + "loss\n";
  }
  const Read read(write(folder / "out.log", text));
  CHECK(read.kinds.size() == 2);
  CHECK(read.scale(1) == 2048);  // of the second engine, which is read last
}

std::string megatron(int iteration, const char* scale, int skipped) {
  return " iteration " + std::to_string(iteration) +
         "/ 100 | lm loss: 2.0E+00 | loss scale: " + scale +
         " | number of skipped iterations:   " + std::to_string(skipped) +
         " | number of nan iterations:   0 |\n";
}

TEST_CASE("the scale of an iteration line is the next one's") {
  const test::TempFolder folder;
  const Read each(write(folder / "each.log", megatron(1, "1024.0", 0) + megatron(2, "512.0", 1) +
                                                 megatron(3, "512.0", 0)));
  CHECK(each.skipped(1) == false);
  CHECK(each.scale(1) == std::nullopt);
  CHECK(each.scale(2) == 1024);
  CHECK(each.skipped(2) == true);
  CHECK(each.scale(3) == 512);
  CHECK(each.scalars.rbegin()->first == 3);  // no step that was not run
  const Read some(
      write(folder / "some.log", megatron(100, "1024.0", 0) + megatron(200, "256.0", 2)));
  REQUIRE(some.skips.size() == 1);
  CHECK(some.skips[0].first == 101);
  CHECK(some.skips[0].last == 200);
  CHECK(some.skips[0].count == 2);
  CHECK(some.skips[0].scale_from == 1024);
  CHECK(some.skips[0].scale_to == 256);
}

TEST_CASE("texts that are no console logs are refused") {
  const test::TempFolder folder;
  write(folder / "run" / "notes.txt", "nothing to see\n");
  CHECK_FALSE(console::is_console_log(folder / "run"));
  CHECK_THROWS_WITH(Read(folder / "run"),
                    Catch::Contains("holds no file that Halfscope can read") &&
                        Catch::Contains("'notes.txt' is text without any line") &&
                        Catch::Contains("'halfscope logs --kinds' lists what it reads"));
  std::string binary;
  for (int i = 0; i < 100; ++i) binary += static_cast<char>(i % 32);
  write(folder / "binary.log", binary + deepspeed(4, 2));
  CHECK_FALSE(console::is_console_log(folder / "binary.log"));
}

TEST_CASE("zeros in a console log are passed over") {
  const test::TempFolder folder;
  write(folder / "zeros.log", std::string(100, '\0') + deepspeed(4, 2));
  CHECK(console::is_console_log(folder / "zeros.log"));
  write(folder / "hole.log", std::string(std::size_t{1} << 20, '\0') + deepspeed(4, 2));
  CHECK(console::is_console_log(folder / "hole.log"));
}

TEST_CASE("a console log is known by its end as well, and by its middle") {
  const test::TempFolder folder;
  std::string text;
  while (text.size() < (std::size_t{1} << 20)) text += "nothing to see here\n";
  CHECK_FALSE(console::is_console_log(write(folder / "out.log", text)));
  CHECK(console::is_console_log(write(folder / "out.log", text + deepspeed(4, 2))));
  CHECK(console::is_console_log(write(folder / "out.log", text + deepspeed(4, 2) + text)));
}

TEST_CASE("several kinds in one folder are one timeline") {
  const test::TempFolder folder;
  write(folder / "run" / "Train_Samples_loss_scale.csv", "step,loss_scale\n32,65536\n64,32768\n");
  write(folder / "run" / "stdout.txt", "Grad overflow on iteration: 7\n");
  const Read read(folder / "run");
  CHECK(read.scale(2) == 65536);
  CHECK(read.skipped(8) == true);
  CHECK(read.kinds.size() == 2);
  CHECK(read.says("treated as one run, joined by step"));
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_console_log
