// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics.hpp"

#include <cmath>

#include "analyzers/readers/statistics/statistics.hpp"
#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_metrics_csv {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;

const std::string kHeader = "epoch,grad_norm,lr-AdamW,loss_scale,step,train_loss_step,val_loss\n";

TEST_CASE("metrics CSV: Lightning's table, several rows of one step, empty cells") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "lightning_logs/version_0");
  folder.write("lightning_logs/version_0/metrics.csv",
               kHeader + ",,0.001,,49,,\n0,1.5,,65536.0,49,2.5,\n0,nan,,32768.0,99,2.25,\r\n" +
                   "0,,,,99,,inf\n");
  for (const char* log :
       {"lightning_logs", "lightning_logs/version_0", "lightning_logs/version_0/metrics.csv"}) {
    INFO(log);
    const Told told = told_of(folder / log);
    REQUIRE(told.scalars.size() == 2);
    CHECK(told.scalars.at(49).loss == 2.5);
    CHECK(told.scalars.at(49).learning_rate == 0.001);
    CHECK(told.scalars.at(49).loss_scale == 65536.0);
    CHECK(told.scalars.at(99).loss_scale == 32768.0);
    CHECK(std::isnan(told.scalars.at(99).more.at("gradient_norm")));
    CHECK(std::isinf(told.scalars.at(99).more.at("evaluation_loss")));
    CHECK(told.leaves_open(Gap::tensors));
    CHECK(told.notes.empty());
  }
  std::filesystem::create_directories(folder / "lightning_logs/version_1");
  folder.write("lightning_logs/version_1/metrics.csv", kHeader + ",,0.001,,49,,\n");
  CHECK_THROWS_AS(told_of(folder / "lightning_logs"), log::BadInput);
}

TEST_CASE("metrics CSV: any table with steps and a scalar that is known, and no other tool's") {
  const TempFolder folder;
  const Told chart =
      told_of(folder.write("chart.csv",
                           "\xef\xbb\xbf\"Step\",\"run, 1 - train/loss\",\"run 2 - train/loss\"\n"
                           "\"10\",\"2.5\",\"\"\n\"20\",\"2.25\",\"7\"\n"));
  CHECK(chart.scalars.at(10).loss == 2.5);
  CHECK(chart.scalars.at(20).loss == 2.25);
  CHECK(
      chart.noted("the loss is read from 'run, 1 - train/loss'; 'run 2 - train/loss' is not used"));
  const auto is_ours = [&](const std::string& text) {
    return analyzers::readers::metrics::is_metrics_csv(folder.write("log", text));
  };
  CHECK(is_ours("loss,step\n"));
  CHECK(is_ours("epoch,loss\n"));
  CHECK(is_ours("step,loss\n1,2\n"));
  CHECK(!is_ours("step,Train_Samples_train_loss\n1,2\n"));
  CHECK(analyzers::readers::metrics::is_deepspeed_csv(folder / "log"));
  CHECK(!is_ours("vpp_stage,name,step,loss,min,max\n"));
  CHECK(analyzers::readers::statistics::is_msprobe(folder / "log"));
  for (const char* other :
       {"step,accuracy,f1\n", "epoch,units\n", "loss, step", "step loss\n", ""}) {
    INFO(other);
    CHECK(!is_ours(other));
  }
}

TEST_CASE("metrics CSV: the names of console logs, whatever the steps are called") {
  const TempFolder folder;
  const Told told = told_of(folder.write(
      "log",
      "_step,Cost,grad_norm_total,lg_loss_scale,L.r.\n1,3.5,nan,10,0.5\n2,2.5,1.5,9,0.25\n"));
  CHECK(told.scalars.at(1).loss == 3.5);
  CHECK(std::isnan(told.scalars.at(1).more.at("gradient_norm")));
  CHECK(told.scalars.at(1).loss_scale == 1024);
  CHECK(told.scalars.at(2).loss_scale == 512);
  CHECK(told.scalars.at(2).learning_rate == 0.25);
  CHECK(told.notes.empty());
  const Told epochs = told_of(folder.write("epochs", "epoch,loss,val_loss\n1,2.5,nan\n2,2,3\n"));
  CHECK(epochs.scalars.at(2).loss == 2);
  CHECK(std::isnan(epochs.scalars.at(1).more.at("evaluation_loss")));
  const Told both = told_of(folder.write("both", "step,global_step,loss\n1,10,2.5\n1,11,2\n"));
  CHECK(both.scalars.at(11).loss == 2);  // of two columns of steps, that of the run's
  const Told sum = told_of(folder.write("sum", "loss,step,total_loss\n1,5,2.5\n"));
  CHECK(sum.scalars.at(5).loss == 2.5);
  CHECK(sum.noted("the loss is read from 'total_loss'; 'loss' is not used"));
}

TEST_CASE("metrics CSV: counters of skipped steps are of the steps since the row before") {
  const TempFolder folder;
  const Told all = told_of(folder.write(
      "all", "step,skipped_steps,loss\n1,0,2\n2,1,2\n10,4,2\n20,4,2\n30,99,2\n40,nan,2\n"));
  CHECK(all.scalars.at(1).found_inf == false);
  CHECK(all.scalars.at(2).found_inf == true);
  REQUIRE(all.skips.size() == 1);  // 95 more in 10 steps cannot be
  CHECK(all.skips[0].first == 3);
  CHECK(all.skips[0].last == 10);
  CHECK(all.skips[0].count == 3);
  CHECK(all.kinds[0].counted_from == 1);
  const Told between = told_of(
      folder.write("between", "step,number of skipped iterations,loss\n10,5,2\n20,0,2\n30,2,2\n"));
  REQUIRE(between.skips.size() == 1);
  CHECK(between.skips[0].first == 21);
  CHECK(between.skips[0].last == 30);
  CHECK(between.skips[0].count == 2);
}

TEST_CASE("metrics CSV: a header that comes again is a restart") {
  const TempFolder folder;
  const Told told =
      told_of(folder.write("log", "step,lr,loss\n3,0.5,2.5\n4,0.5,2\nstep,loss,lr\n4,1.5,0.25\n"));
  CHECK(told.scalars.at(4).loss == 1.5);
  CHECK(told.scalars.at(4).learning_rate == 0.25);
  CHECK(told.notes.empty());
}

TEST_CASE("metrics CSV: hostile rows are skipped and told") {
  const TempFolder folder;
  const auto bad = GENERATE(std::string("x,1,1"), std::string("-1,1,1"), std::string("1.5,1,1"),
                            std::string("nan,1,1"), std::string("1e300,1,1"), std::string(","),
                            "7,1,one", "\"7,1,1", std::string(2'000'000, ','));
  INFO(bad.substr(0, 20));
  const Told told = told_of(
      folder.write("log", "step,lr,loss\n3,0.5,2.5\n" + std::string(bad) + "\n4,0.5,2.25\n"));
  CHECK(told.scalars.at(3).loss == 2.5);
  CHECK(told.scalars.at(4).loss == 2.25);
  CHECK(told.noted("a line is skipped; the first is line 3"));
}

}  // namespace test_metrics_csv
