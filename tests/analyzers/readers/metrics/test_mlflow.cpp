// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics.hpp"

#include <cmath>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_mlflow {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;

TEST_CASE("MLflow: a run's metrics by their names, nested ones too, from any folder above") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "mlruns/0/abc/metrics/train");
  std::filesystem::create_directories(folder / "mlruns/0/abc/params");
  folder.write("mlruns/0/abc/meta.yaml", "run_id: abc\n");
  folder.write("mlruns/0/abc/params/lr", "0.1");
  folder.write("mlruns/0/abc/metrics/train/loss",
               "1712000000000 2.5 0\n1712000000100 nan 1\n1712000000200 2.0 2\n");
  folder.write("mlruns/0/abc/metrics/loss_scale", "1712000000000 65536.0 0\n");
  folder.write("mlruns/0/abc/metrics/eval_loss", "1712000000000 inf 2 data digest\n");
  for (const char* log : {"mlruns", "mlruns/0", "mlruns/0/abc", "mlruns/0/abc/metrics"}) {
    INFO(log);
    const Told told = told_of(folder / log);
    REQUIRE(told.scalars.size() == 3);
    CHECK(told.scalars.at(0).loss == 2.5);
    CHECK(told.scalars.at(0).loss_scale == 65536.0);
    CHECK(std::isnan(told.scalars.at(1).loss.value()));
    CHECK(std::isinf(told.scalars.at(2).more.at("evaluation_loss")));
    CHECK(told.notes.empty());
    CHECK(told.leaves_open(Gap::tensors));
    CHECK(!told.leaves_open(Gap::steps));
  }
  CHECK(told_of(folder / "mlruns/0/abc/metrics/train/loss").scalars.size() == 3);
  std::filesystem::create_directories(folder / "mlruns/1/def/metrics");
  CHECK_NOTHROW(told_of(folder / "mlruns"));  // without metrics it is no run to be asked for
  folder.write("mlruns/1/def/metrics/loss", "1712000000000 2.5 0\n");
  CHECK_THROWS_AS(told_of(folder / "mlruns"), log::BadInput);
}

TEST_CASE("MLflow: what was logged without steps is numbered") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "metrics");
  folder.write("metrics/loss", "1712000000000 3 0\n1712000000001 2 0\n1712000000002 1 0\n");
  folder.write("metrics/lr", "1712000000000 0.5\n1712000000001 0.25\n");
  const Told told = told_of(folder / "metrics");
  CHECK(told.scalars.at(2).loss == 1);
  CHECK(told.scalars.at(1).learning_rate == 0.25);
  CHECK(told.noted("were logged without steps"));
  CHECK(told.leaves_open(Gap::steps));
}

TEST_CASE("MLflow: hostile lines are skipped and told, other files are not taken") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "metrics");
  const auto log = folder.write("metrics/loss",
                                "1712000000000 2.5 7\n1712000000000 x 1\n17 1 1\n"
                                "1712000000000 1 -1\n1712000000000 1 9223372036854775808\n\n" +
                                    std::string(100'000, ' ') + "\n");
  const Told told = told_of(folder / "metrics");
  CHECK(told.scalars.size() == 1);
  CHECK(told.scalars.at(7).loss == 2.5);
  CHECK(told.noted("4 lines are skipped; the first is line 2: expected 'time value step'"));
  using analyzers::readers::metrics::is_mlflow;
  CHECK(is_mlflow(log));
  for (const char* other : {"1 2 3\n", "1712000000000\n", "time value step\n", ""}) {
    INFO(other);
    CHECK(!is_mlflow(folder.write("metrics/loss", other)));
    CHECK(!is_mlflow(folder / "metrics"));
  }
}

}  // namespace test_mlflow
