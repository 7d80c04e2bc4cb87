// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "analyzers/readers/metrics/metrics.hpp"
#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_deepspeed_csv {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;
using analyzers::readers::metrics::is_deepspeed_csv;
namespace fs = std::filesystem;

fs::path write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

/// What reading tells, by step.
struct Read : Told {
  explicit Read(const fs::path& log, const analyzers::frames::Selection& selection = {})
      : Told(told_of(log, selection)) {}
  std::optional<double> scale(std::int64_t step) const {
    return scalars.count(step) ? scalars.at(step).loss_scale : std::nullopt;
  }
  std::optional<bool> skipped(std::int64_t step) const {
    return scalars.count(step) ? scalars.at(step).found_inf : std::nullopt;
  }
};

void write_csv(const fs::path& folder) {
  write(folder / "Train_Samples_loss_scale.csv",
        "step,loss_scale\r\n32,65536\r\n64,32768\r\n96,32768\r\n128,65536\r\n192,16384\r\n");
  write(folder / "Train_Samples_lr.csv", "step,lr\r\n32,0.1\r\n64,0.2\r\n");
  write(folder / "Train_Samples_train_loss.csv", "step,train_loss\r\n0,3.5\r\n32,3.25\r\n");
  write(folder / "Train_Samples_elapsed_time_ms_step.csv", "step,elapsed_time_ms_step\r\n33,9\r\n");
}

TEST_CASE("DeepSpeed's CSV files are one timeline") {
  const TempFolder folder;
  write_csv(folder / "run" / "job");
  CHECK(is_deepspeed_csv(folder / "run"));
  CHECK(is_deepspeed_csv(folder / "run" / "job" / "Train_Samples_lr.csv"));
  const Read read(folder / "run");
  CHECK(read.scale(1) == std::nullopt);
  CHECK(read.scale(2) == 65536);
  CHECK(read.skipped(2) == true);  // 32768 is what is left after it
  CHECK(read.scale(3) == 32768);
  CHECK(read.skipped(3) == std::nullopt);  // hysteresis may hide an overflow
  CHECK(read.skipped(4) == false);         // it grew
  CHECK(read.scale(5) == 65536);
  REQUIRE(read.skips.size() == 1);  // step 5 has no row
  CHECK(read.skips[0].first == 5);
  CHECK(read.skips[0].last == 6);
  CHECK(read.skips[0].count == 2);  // two halvings in two steps
  CHECK(read.scalars.at(1).loss == 3.5);
  CHECK(read.scalars.at(2).loss == 3.25);
  CHECK(read.scalars.at(2).learning_rate == 0.2);
  CHECK(read.noted("counts samples, 32 per step"));
  CHECK(read.kinds[0].gaps == std::vector<Gap>{Gap::tensors});
}

TEST_CASE("rows that are not one batch apart keep their numbers of samples") {
  const TempFolder folder;
  write(folder / "run" / "Train_Samples_loss_scale.csv",
        "step,loss_scale\n32,64\n64,32\n100,32\nx,y\n");
  const Read read(folder / "run");
  CHECK(read.scale(33) == 64);
  CHECK(read.noted("numbers of samples"));
  CHECK(read.noted("the first is line 5"));
  CHECK(read.kinds[0].gaps == std::vector<Gap>{Gap::tensors, Gap::steps});
}

TEST_CASE("a CSV file whose second column has the file's own name is read") {
  const TempFolder folder;
  const std::string rows = "32,64\n64,nan\n96,32\n128,32\n";
  for (const char* name : {"Train_Samples_loss_scale", "Train_Samples_loss_scale_0"}) {
    const Read read(write(folder / name / "any.csv", "step," + std::string(name) + "\n" + rows));
    CHECK(read.scale(2) == 64);
    CHECK(read.scale(4) == 32);
    CHECK(read.noted("counts samples, 32 per step"));
    CHECK(
        read.noted("any.csv: a loss scale is infinite, nan or negative at 1 step, first at step 3; "
                   "it is skipped"));
    REQUIRE(read.skips.size() == 1);  // the row between is skipped
    CHECK(read.skips[0].first == 2);
    CHECK(read.skips[0].last == 3);
  }
  const Read loss(write(folder / "l.csv", "step,Train_Samples_train_loss\n0,3\n32,2\n"));
  CHECK(loss.scalars.at(2).loss == 2);
  const fs::path other = write(folder / "other" / "a.csv", "step,Train_Samples_elapsed\n32,7\n");
  const Read none(other);
  CHECK(none.scalars.empty());
  CHECK(
      none.noted("a.csv: no name means loss, learning rate or loss scale, the first is 'a'; use "
                 "--recorded-scale NAME to name the loss scale"));
  analyzers::frames::Selection by_column, by_file;
  by_column.scale_tag = "Train_Samples_elapsed";
  by_file.scale_tag = "a";
  CHECK(Read(other, by_column).scale(32) == 7);
  CHECK(Read(other, by_file).scale(32) == 7);
  write(folder / "other" / "b_lr.csv", "step,lr\n1,0.5\n2,0.5\n");
  write(folder / "other" / "c.csv", "step,Train_Samples_lr\n1,0.25\n");
  const Read both(folder / "other");
  CHECK(both.scalars.at(1).learning_rate == 0.5);
  CHECK(both.scalars.at(2).learning_rate == 0.5);
  CHECK(both.noted("the learning rate is read from 'b_lr'; 'c' is not used"));
}

TEST_CASE("folders of two jobs of DeepSpeed are refused, with a list") {
  const TempFolder folder;
  write_csv(folder / "run" / "job");
  write_csv(folder / "run" / "other");
  CHECK_THROWS_AS(Read(folder / "run"), log::BadInput);
}

TEST_CASE("a header in the middle of DeepSpeed's file is a restart") {
  const TempFolder folder;
  const Read read(write(folder / "Train_Samples_train_loss.csv",
                        "step,train_loss\n0,3\n32,2\nstep,train_loss\n32,2.5\n64,1.5\n"));
  CHECK(read.scalars.at(2).loss == 2.5);
  CHECK(read.scalars.at(3).loss == 1.5);
  CHECK_FALSE(read.noted("skipped"));
}

TEST_CASE("other CSV files are none of DeepSpeed's") {
  const TempFolder folder;
  CHECK_FALSE(is_deepspeed_csv(write(folder / "a.csv", "step,loss,lr\n1,2,3\n")));
  CHECK_FALSE(is_deepspeed_csv(write(folder / "c.csv", "epoch,loss\n1,2\n")));
  CHECK_FALSE(is_deepspeed_csv(folder / "missing"));
}

TEST_CASE(
    "a table of steps and one metric is DeepSpeed's by the names of the metric and the file") {
  const TempFolder folder;
  for (const char* name : {"loss.csv", "run.csv", "Train_loss_old.csv", "myloss.csv"}) {
    INFO(name);
    const Read read(write(folder / name, "step,loss\n32,2.5\n64,2\n"));
    CHECK(read.kinds[0].name == "CSV metrics");
    CHECK(read.kinds[0].tool == analyzers::frames::Tool::other);
    CHECK(read.scalars.at(32).loss == 2.5);
  }
  for (const char* name : {"Train_Samples_loss.csv", "Eval_loss.csv"}) {
    INFO(name);
    const Read read(write(folder / name, "step,loss\n32,2.5\n64,2\n"));
    CHECK(read.kinds[0].name == "DeepSpeed CSV metrics");
  }
  const Read cut(write(folder / "cut" / "Train_Samples_loss.csv", "step,loss\n32,2.\n64,2e-"));
  CHECK(cut.noted("a line is skipped; the first is line 3: a cell is not a number"));
}

}  // namespace test_deepspeed_csv
