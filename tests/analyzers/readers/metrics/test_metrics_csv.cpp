// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics_csv.hpp"

#include <cmath>

#include "analyzers/readers/console/deepspeed_csv.hpp"
#include "analyzers/readers/statistics/msprobe.hpp"
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
  CHECK(chart.noted("'run, 1 - train/loss' and 'run 2 - train/loss' mean the same"));
  const auto is_ours = [&](const std::string& text) {
    return analyzers::readers::metrics::is_metrics_csv(folder.write("log", text));
  };
  CHECK(is_ours("loss,step\n"));
  CHECK(is_ours("epoch,loss\n"));
  CHECK(!is_ours("step,loss\n1,2\n"));
  CHECK(analyzers::readers::console::is_deepspeed_csv(folder / "log"));
  CHECK(!is_ours("vpp_stage,name,step,loss,min,max\n"));
  CHECK(analyzers::readers::statistics::is_msprobe(folder / "log"));
  for (const char* other :
       {"step,accuracy,f1\n", "epoch,units\n", "loss, step", "step loss\n", ""}) {
    INFO(other);
    CHECK(!is_ours(other));
  }
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
