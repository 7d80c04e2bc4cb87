// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/metrics/metrics.hpp"

#include <cmath>

#include "analyzers/reading.hpp"
#include "catch.hpp"

namespace test_trainer_state {

using namespace halfscope;
using namespace halfscope::test;
using analyzers::frames::Gap;

std::string state(const std::string& step, const std::string& history) {
  return "{\n  \"best_metric\": null,\n  \"epoch\": 0.5,\n  \"global_step\": " + step +
         ",\n  \"is_local_process_zero\": true,\n  \"log_history\": [\n" + history +
         "\n  ],\n  \"max_steps\": 100,\n  \"stateful_callbacks\": {\"a\": {\"args\": [[1]]}}\n}\n";
}

const std::string kFirst =
    R"({"epoch": 0.1, "grad_norm": NaN, "learning_rate": 1e-05, "loss": 2.5, "step": 10})";
const std::string kSecond =
    R"({"epoch": 0.2, "grad_norm": 1.5, "learning_rate": 9e-06, "loss": 2.25, "step": 20})";

TEST_CASE("trainer state: entries by step, a summary is no step and null is nothing") {
  const TempFolder folder;
  const Told told = told_of(
      folder.write("any", state("30", kFirst + ",\n" + kSecond +
                                          R"(, {"eval_loss": NaN, "eval_runtime": 3.5, "step": 20},
      {"grad_norm": null, "loss": "2.125", "nested": {"loss": 7, "list": [1]}, "step": 30},
      {"step": 30, "total_flos": 1e12, "train_loss": 1.5, "train_runtime": 12.5})")));
  REQUIRE(told.scalars.size() == 3);
  CHECK(told.scalars.at(10).loss == 2.5);
  CHECK(told.scalars.at(10).learning_rate == 1e-05);
  CHECK(std::isnan(told.scalars.at(10).more.at("gradient_norm")));
  CHECK(told.scalars.at(20).more.at("gradient_norm") == 1.5);
  CHECK(std::isnan(told.scalars.at(20).more.at("evaluation_loss")));
  CHECK(told.scalars.at(30).loss == 2.125);
  CHECK_FALSE(told.scalars.at(30).more.contains("gradient_norm"));
  CHECK(!told.scalars.at(30).loss_scale);
  CHECK(told.leaves_open(Gap::tensors));
  CHECK(told.notes.empty());
  const Told summary = told_of(folder.write(
      "summary", state("30", R"({"step": 30, "train_loss": 1.5, "train_runtime": 12.5})")));
  CHECK(summary.scalars.empty());
}

TEST_CASE("trainer state: of a run's checkpoints the one that came furthest is used") {
  const TempFolder folder;
  std::filesystem::create_directories(folder / "checkpoint-10");
  std::filesystem::create_directories(folder / "checkpoint-9");
  folder.write("checkpoint-9/trainer_state.json", state("20", kFirst + ", " + kSecond));
  folder.write("checkpoint-10/trainer_state.json", state("10", kFirst));
  const Told told = told_of(folder / "");
  CHECK(told.scalars.count(20) == 1);
  CHECK(told.noted("holds 2 trainer states; 'checkpoint-9/trainer_state.json' has come furthest"));
  CHECK(told_of(folder / "checkpoint-10").scalars.size() == 1);
  folder.write("checkpoint-9/trainer_state.json", state("20", kSecond));
  CHECK_THROWS_AS(told_of(folder / ""), log::BadInput);
}

TEST_CASE("trainer state: a loss of 0 beside a norm that is NaN is told") {
  const TempFolder folder;
  const std::string broken = R"({"grad_norm": NaN, "loss": 0.0, "step": 20})";
  const std::string later = R"({"grad_norm": Infinity, "loss": 0.0, "step": 30})";
  const Told told =
      told_of(folder.write("log", state("30", kFirst + ", " + broken + ", " + later)));
  CHECK(
      told.noted("the loss is 0 in 2 entries whose gradient norm is NaN or infinite, first at "
                 "step 20"));
}

TEST_CASE("trainer state: hostile text is told, what stands before it read") {
  const TempFolder folder;
  const auto bad = GENERATE(std::string(2'000'000, '['), std::string("{\"loss\": 1e999}"),
                            std::string("{\"a\": "), std::string("]}}"), std::string("\xff\xfe"),
                            std::string("Infinit"));
  const std::string whole = state("10", kFirst + ", ");
  const Told told =
      told_of(folder.write("log", whole.substr(0, whole.find(kFirst)) + kFirst + ", " + bad));
  CHECK(told.scalars.size() == 1);
  CHECK(told.noted("is not JSON at"));
  const Told odd =
      told_of(folder.write("odd", state("10", kFirst + R"(, {"loss": 1}, {"loss": 1, "step": 1.5},
      {"loss": 1, "step": -1}, {"loss": 1, "step": 1e300}, 7, "loss", [{"loss": 5, "step": 3}])")));
  CHECK(odd.scalars.size() == 1);
  CHECK(odd.noted("4 entries of log_history have no whole number as their step"));
  CHECK_THROWS_AS(told_of(folder.write("none", "{\"log_history\": []}")), log::BadInput);
}

}  // namespace test_trainer_state
