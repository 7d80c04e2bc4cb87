// SPDX-License-Identifier: Apache-2.0
#include "analyzers/policy_advice.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "catch.hpp"

namespace halfscope::analyzers {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

StepSeries series_of(const std::vector<double>& magnitudes) {
  StepSeries series;
  for (const double m : magnitudes) {
    series.steps.push_back(static_cast<std::int64_t>(series.seen.size()));
    series.seen.push_back({m, 0});
  }
  return series;
}

/// The traps of one policy, by id.
std::vector<Trap> found(const StepSeries& series, const std::string& policy, const char* id) {
  std::vector<Trace> traces;
  if (!policy.empty()) traces.push_back(replay(policy::make(policy), series));
  std::vector<Trap> all = traps(series, traces);
  std::erase_if(all, [&](const Trap& trap) { return trap.id != id; });
  return all;
}

bool says(const std::vector<Trap>& traps, std::string_view part) {
  return traps.size() == 1 && traps[0].text.find(part) != std::string::npos;
}

TEST_CASE("Tuned settings skip nothing where a static scale would") {
  const StepSeries series = series_of(std::vector<double>(3000, 0.5));
  const auto tuned = tune(policy::make("torch"), series, 0.001);
  REQUIRE(tuned);
  CHECK(tuned->trace.skipped.empty());
  CHECK(tuned->name == "torch");
  CHECK(tuned->tried > 20);
  CHECK(policy::text_of(policy::make(tuned->text)) == tuned->trace.text);
  CHECK(replay(policy::make("torch"), series).skipped.size() == 1);  // the default probes
}

TEST_CASE("Tuning keeps the flushed share at the target where it can") {
  StepSeries series = series_of(std::vector<double>(1000, 0.5));
  // At 2^10 2 % are flushed, at 2^12 and above none.
  series.flushed.push_back({0, 100, 9, {100, 2, 1, 0}});
  const auto tuned = tune(policy::make("torch"), series, 0.005);
  REQUIRE(tuned);
  CHECK(tuned->within_target);
  CHECK(tuned->trace.scale_at(0) >= 4096);
  CHECK(tuned->trace.skipped.empty());
  StepSeries hopeless = series;
  hopeless.flushed = {{0, 100, 20, {100, 50}}};
  const auto best = tune(policy::make("torch"), hopeless, 0.005);
  REQUIRE(best);
  CHECK(!best->within_target);
}

TEST_CASE("Tuning lowers a floor that is in the way") {
  const StepSeries series = series_of(std::vector<double>(500, 0x1p20));
  const auto tuned = tune(policy::make("megatron"), series, 0.001);
  REQUIRE(tuned);
  CHECK(tuned->text.find("min_scale=") != std::string::npos);
  CHECK(tuned->trace.final_scale < 1);
  CHECK(tuned->trace.skipped.empty());
}

TEST_CASE("Tuning answers nothing where no step tells a scale") {
  for (const double value : {0.0, double{NAN}}) {
    CHECK(!tune(policy::make("torch"), series_of(std::vector<double>(200, value)), 0.001));
  }
}

TEST_CASE("Where NaN in the model costs every setting the same, the default is as good") {
  std::vector<double> magnitudes(300, 0.01);
  magnitudes.resize(400, NAN);
  const auto tuned = tune(policy::make("torch"), series_of(magnitudes), 0.001);
  REQUIRE(tuned);
  CHECK(tuned->text == "torch");
  CHECK(tuned->trace.skipped.size() == 100);
  CHECK(!tune(policy::make("deepspeed"), series_of(magnitudes), 0.001)->text.empty());
}

TEST_CASE("No initial scale is advised at which the run overflowed") {
  StepSeries series = series_of(std::vector<double>(200, 0.01));
  series.seen[50] = {kInf, 65536};
  const auto tuned = tune(policy::make("torch"), series, 0.001);
  REQUIRE(tuned);
  CHECK(tuned->trace.scale_at(0) <= 32768);
}

TEST_CASE("A short series leaves a binade to spare") {
  const auto start = [](std::size_t steps) {
    const auto tuned = tune(policy::make("torch"), series_of(std::vector<double>(steps, 1.0)), 0);
    return tuned->trace.scale_at(0);
  };
  CHECK(start(100) == 32768);
  CHECK(start(99) == 16384);
}

TEST_CASE("Policies without these settings are not tuned") {
  const StepSeries series = series_of({0.5, 0.5});
  for (const char* name : {"static", "als", "te-delayed", "os2s-logmax", "mxnet-static"}) {
    CHECK(!tune(policy::make(name), series, 0.001));
  }
}

TEST_CASE("Trap: a floor above the scale that is needed") {
  const StepSeries series = series_of(std::vector<double>(60, 1e6));
  const auto tf = found(series, "tf1", "floor");
  CHECK(says(tf, "a scale of 2^-4 would hold them"));
  CHECK(says(found(series, "megatron,initial_scale=1024", "floor"), "Set min_scale to 2^-4"));
  CHECK(found(series, "torch", "floor").empty());
  CHECK(found(series_of(std::vector<double>(60, NAN)), "tf1", "floor").empty());
}

TEST_CASE("Trap: an exception at the floor") {
  const auto trap = found(series_of(std::vector<double>(60, 1e6)), "deepspeed", "exception");
  CHECK(says(trap, "Current loss scale already at minimum"));
  CHECK(says(trap, "A scale of 2^-4 would have held"));
  CHECK(says(found(series_of(std::vector<double>(60, NAN)), "fairseq", "exception"),
             "No scale would have helped"));
}

TEST_CASE("Traps name no scale that nobody knows to hold, and rest on no unknown step") {
  StepSeries series = series_of(std::vector<double>(60, kInf));
  for (Seen& seen : series.seen) seen.overflow_from = 0x1p-3;
  CHECK(says(found(series, "tf1", "floor"), "a scale of at most 2^-4 (how much less"));
  CHECK(says(found(series, "deepspeed", "exception"), "A scale of at most 2^-4 (how much less"));
  for (Seen& seen : series.seen) seen.overflow_from = 4;  // below it nobody knows
  for (const policy::Policy& policy : policy::all()) {
    const std::string name(policy::info_of(policy).name);
    INFO(name);
    for (const char* id : {"floor", "exception", "zero", "retries"}) {
      CHECK(found(series, name, id).empty());
    }
  }
}

TEST_CASE("Trap: an exception without a floor names what there is") {
  std::vector<double> magnitudes(20, NAN);
  magnitudes.push_back(0.5);
  const auto trap = found(series_of(magnitudes), "nnabla", "exception");
  CHECK(says(trap, "Its scale was 0 by then"));
  CHECK(says(trap, "that no scale cures"));
  CHECK(trap.at(0).text.find("floor,") == std::string::npos);
  CHECK(says(found(series_of(std::vector<double>(60, 1e6)), "deepspeed", "exception"),
             "lower min_scale"));
}

TEST_CASE("Trap: hysteresis that refills only at growth") {
  const StepSeries series = series_of(std::vector<double>(40, 0.5));
  const auto trap = found(series, "megatron,initial_scale=65536,growth_interval=4", "hysteresis");
  CHECK(says(trap, "Set hysteresis=1."));
  CHECK(trap.at(0).step == 4);
  CHECK(found(series, "megatron,initial_scale=65536,growth_interval=4,hysteresis=1", "hysteresis")
            .empty());
  CHECK(found(series, "torch,growth_interval=4", "hysteresis").empty());
}

TEST_CASE("Trap: collapse to zero, and NaN that no scale cures") {
  const StepSeries series = series_of(std::vector<double>(400, NAN));
  CHECK(says(found(series, "torch", "zero"), "The model makes them"));
  CHECK(says(found(series, "torch", "nan_in_model"), "no loss scale cures"));
  CHECK(found(series_of({1, 1}), "torch", "nan_in_model").empty());
}

TEST_CASE("Trap: stuck at infinity") {
  const StepSeries series = series_of(std::vector<double>(400, 0.0));
  CHECK(says(found(series, "keras3,dynamic_growth_steps=1", "infinity"), "stays there"));
  CHECK(found(series, "torch,growth_interval=1", "infinity").empty());
}

TEST_CASE("Trap: infinities applied") {
  const StepSeries series = series_of(std::vector<double>(20, NAN));
  CHECK(says(found(series, "fastai1,loss_scale=4", "applied"), "At a scale of 1 or less"));
  CHECK(says(found(series, "mxnet-static", "applied"), "It never checks"));
  CHECK(found(series, "torch", "applied").empty());
}

TEST_CASE("Trap: NNabla's retries cost what no run wins back") {
  const auto trap = found(series_of({0.5, NAN, 0.5}), "nnabla", "retries");
  CHECK(says(trap, "it falls by 2^101"));
  CHECK(trap.at(0).step == 1);
  CHECK(found(series_of({0.5, 1e6, 0.5}), "nnabla", "retries").empty());
}

TEST_CASE("Trap: a scale that was not in the checkpoint") {
  StepSeries series = series_of(std::vector<double>(6, 0.01));
  series.recorded_scale = {128.0, 256.0, 256.0, 65536.0, 65536.0, 131072.0};
  const auto trap = found(series, "", "not_in_checkpoint");
  CHECK(says(trap, "from 256 to 65536 at step 3"));
  series.recorded_scale = {128.0, 256.0, 256.0, 512.0, 256.0, 128.0};
  CHECK(found(series, "", "not_in_checkpoint").empty());
}

TEST_CASE("Trap: an overflow that no recorded gradient explains") {
  StepSeries series = series_of({0.5, kInf, 0.5});
  series.seen[1].overflow_from = 1024;
  series.recorded_scale = {1024.0, 1024.0, 512.0};
  series.unexplained = {{1, 0.5}};
  const auto trap = found(series, "", "norm_overflow");
  CHECK(says(trap, "they reach 0.5 and 65520 over the scale is 63.98"));
  CHECK(trap.at(0).step == 1);
}

TEST_CASE("Tuning over a million steps takes seconds") {
  std::vector<double> magnitudes;
  for (int i = 0; i < 1'000'000; ++i) magnitudes.push_back(std::exp2(std::sin(i * 0.37) * 6));
  const StepSeries series = series_of(magnitudes);
  for (const char* name : {"torch", "megatron", "nnabla", "mxnet"}) {
    const auto start = std::chrono::steady_clock::now();
    const auto tuned = tune(policy::make(name), series, 0.001);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    REQUIRE(tuned);
    CHECK(tuned->tried > 0);
    CHECK(took.count() < 30);  // 0.2 s on two idle cores
  }
}

}  // namespace
}  // namespace halfscope::analyzers
