// SPDX-License-Identifier: Apache-2.0
// Dynamic settings: which are best, and what stops them.
#include "analyzers/replay/policy_study.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "analyzers/policy_series.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_policy_tune {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// What tuning makes of a policy with settings.
replay::TunedPolicy tuned_from(const std::string& policy, const replay::StepSeries& series,
                               double target = 0.001) {
  const auto tuned = replay::tune(policy::make(policy), series, {.target_underflow = target});
  REQUIRE(tuned);
  return *tuned;
}

TEST_CASE("Tuned settings skip nothing where a static scale would") {
  const replay::StepSeries series = series_of(std::vector<double>(3000, 0.5));
  const auto tuned = replay::tune(policy::make("torch"), series, {.target_underflow = 0.001});
  REQUIRE(tuned);
  CHECK(tuned->trace.skipped.empty());
  CHECK(tuned->name == "torch");
  CHECK(tuned->tried > 20);
  CHECK(policy::text_of(policy::make(tuned->text)) == policy::text_of(tuned->trace.policy));
  CHECK(replay::replay(policy::make("torch"), series).skipped.size() == 1);  // the default probes
}

TEST_CASE("Tuning keeps the flushed share at the target where it can") {
  replay::StepSeries series = series_of(std::vector<double>(1000, 0.5));
  // At 2^10 2 % are flushed, at 2^12 and above none.
  series.flushed.push_back({0, 100, 9, {100, 2, 1, 0}});
  const auto tuned = replay::tune(policy::make("torch"), series, {.target_underflow = 0.005});
  REQUIRE(tuned);
  CHECK(tuned->within_target);
  CHECK(tuned->trace.scale_at(0) >= 4096);
  CHECK(tuned->trace.skipped.empty());
  replay::StepSeries hopeless = series;
  hopeless.flushed = {{0, 100, 20, {100, 50}}};
  const auto best = replay::tune(policy::make("torch"), hopeless, {.target_underflow = 0.005});
  REQUIRE(best);
  CHECK(!best->within_target);
}

TEST_CASE("Tuning lowers a floor that is in the way") {
  const replay::StepSeries series = series_of(std::vector<double>(500, 0x1p20));
  const auto tuned = replay::tune(policy::make("megatron"), series, {.target_underflow = 0.001});
  REQUIRE(tuned);
  CHECK(tuned->text.find("min_scale=") != std::string::npos);
  CHECK(tuned->trace.final_scale < 1);
  CHECK(tuned->trace.skipped.empty());
}

TEST_CASE("Tuning answers nothing where no step tells a scale") {
  for (const double value : {0.0, double{NAN}}) {
    CHECK(!replay::tune(policy::make("torch"), series_of(std::vector<double>(200, value)),
                        {.target_underflow = 0.001}));
  }
}

TEST_CASE("Where NaN in the model costs every setting the same, the default is as good") {
  std::vector<double> magnitudes(300, 0.01);
  magnitudes.resize(400, NAN);
  replay::StepSeries series = series_of(magnitudes);
  series.flushed = {{0, 100, 10, {0}}};
  const auto tuned = replay::tune(policy::make("torch"), series, {.target_underflow = 0.001});
  REQUIRE(tuned);
  CHECK(tuned->text == "torch");
  CHECK(tuned->trace.skipped.size() == 100);
  CHECK(!replay::tune(policy::make("deepspeed"), series_of(magnitudes), {.target_underflow = 0.001})
             ->text.empty());
}

TEST_CASE("No initial scale is advised at which the run overflowed") {
  replay::StepSeries series = series_of(std::vector<double>(200, 0.01));
  series.seen[50] = {kInf, 65536};
  const auto tuned = replay::tune(policy::make("torch"), series, {.target_underflow = 0.001});
  REQUIRE(tuned);
  CHECK(tuned->trace.scale_at(0) <= 32768);
}

TEST_CASE("A short series leaves a binade to spare") {
  const auto start = [](std::size_t steps) {
    const auto tuned = replay::tune(
        policy::make("torch"), series_of(std::vector<double>(steps, 1.0)), {.target_underflow = 0});
    return tuned->trace.scale_at(0);
  };
  CHECK(start(100) == 32768);
  CHECK(start(99) == 16384);
}

TEST_CASE("All settings but initial scale, growth interval and floor stay as they are") {
  const replay::StepSeries series = series_of(std::vector<double>(400, 0.5));
  const auto has = [](const replay::TunedPolicy& tuned, const char* name, double value) {
    return policy::number_of(tuned.trace.policy, name) == value;
  };
  const replay::TunedPolicy deepspeed =
      tuned_from("deepspeed,init_scale=2^20,hysteresis=3,scale_factor=4", series);
  CHECK(!deepspeed.kept);
  CHECK(has(deepspeed, "delayed_shift", 3));
  CHECK(has(deepspeed, "scale_factor", 4));
  CHECK(has(deepspeed, "min_scale", 1));
  CHECK(has(tuned_from("megatron,hysteresis=5", series), "hysteresis", 5));
  const replay::TunedPolicy torch = tuned_from("torch,backoff_factor=0.25,init_scale=2^20", series);
  CHECK(has(torch, "backoff_factor", 0.25));
  CHECK(torch.trace.scale_at(0) < 0x1p20);
  CHECK(torch.trace.skipped.empty());
}

TEST_CASE("Settings that do as well as any are kept") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.01));
  CHECK(!tuned_from("torch,init_scale=4", series).kept);  // nobody knows what is flushed there
  series.flushed.push_back({0, 100, 13, {0}});
  const replay::TunedPolicy own = tuned_from("torch,init_scale=8192,growth_interval=700", series);
  CHECK(own.kept);
  CHECK(own.text == "torch,init_scale=8192,growth_interval=700");
  replay::StepSeries flushing = series;
  flushing.flushed = {{0, 100, 13, {50, 0}}};  // half of them at 2^13
  const replay::TunedPolicy other =
      tuned_from("torch,init_scale=8192,growth_interval=700", flushing);
  CHECK(!other.kept);
  CHECK(other.within_target);
  CHECK(other.trace.scale_at(0) >= 0x1p14);
}

TEST_CASE("Advice stays below the ceiling of a framework and above what it can start at") {
  const replay::StepSeries small = series_of(std::vector<double>(400, 0x1p-40));
  CHECK(policy::scale_of(tuned_from("apex,init_scale=4", small).trace.policy) <= 0x1p24);
  CHECK(policy::scale_of(tuned_from("fastai1,loss_scale=4", small).trace.policy) <= 0x1p24);
  CHECK(policy::scale_of(tuned_from("mxnet,init_scale=4", small).trace.policy) <= 0x1p24);
  CHECK(policy::scale_of(tuned_from("os2s-backoff", small).trace.policy) <= 0x1p14);
  CHECK(policy::scale_of(tuned_from("os2s-backoff,scale_max=2^20", small).trace.policy) <= 0x1p20);
  CHECK(policy::scale_of(tuned_from("colossalai,max_scale=2^5", small).trace.policy) <= 0x1p5);
  CHECK(policy::scale_of(tuned_from("torch,init_scale=4", small).trace.policy) > 0x1p24);
  const replay::StepSeries large = series_of(std::vector<double>(400, 0x1p20));
  for (const char* name :
       {"tf1", "keras2", "mindspore", "mindspore-cell", "apex-legacy", "paddle"}) {
    INFO(name);
    const replay::TunedPolicy tuned = tuned_from(name, large);
    CHECK(tuned.trace.scale_at(0) >= 1);
    CHECK(tuned.stopped_by.find("cannot fall below 1, which no setting lowers") !=
          std::string::npos);
  }
}

TEST_CASE("OpenSeq2Seq is told its start by its ceiling") {
  const replay::TunedPolicy tuned =
      tuned_from("os2s-backoff", series_of(std::vector<double>(400, 64)));
  CHECK(!tuned.kept);
  CHECK(tuned.text.find("scale_max=") != std::string::npos);
  CHECK(tuned.text.find("initial_scale=") == std::string::npos);
  CHECK(tuned.trace.skipped.empty());
}

TEST_CASE("DeepSpeed's configuration file has integers") {
  const replay::TunedPolicy tuned =
      tuned_from("deepspeed", series_of(std::vector<double>(60, 0x1p20)));
  CHECK(tuned.trace.scale_at(0) == 1);
  CHECK(policy::number_of(tuned.trace.policy, "min_scale") == 0);
  CHECK(!tuned.trace.error);
  CHECK(tuned.trace.skipped.size() == 5);  // down to 2^-5
  CHECK(tuned.stopped_by ==
        "The initial scale cannot be below 1, but 5 steps need a scale of 2^-5 "
        "or less.");
}

TEST_CASE("A run shorter than the scale takes to come down is told") {
  const replay::TunedPolicy tuned =
      tuned_from("deepspeed", series_of(std::vector<double>(3, 0x1p20)));
  CHECK(tuned.stopped_by.find("still at 2^-3 after 3 steps") != std::string::npos);
}

TEST_CASE("A short run may need to grow soon") {
  std::vector<double> magnitudes(40, 0.5);
  magnitudes.resize(160, 0x1p-10);
  replay::StepSeries series = series_of(magnitudes);
  for (const std::int64_t step : {100, 120, 140}) {  // nothing is flushed from 2^20 on
    series.flushed.push_back({step, 100, 19, {50, 0}});
  }
  const replay::TunedPolicy tuned = tuned_from("torch", series);
  CHECK(tuned.within_target);
  CHECK(policy::number_of(tuned.trace.policy, "growth_interval") <= 50);
  CHECK(tuned.trace.skipped.size() <= 1);
}

TEST_CASE("What stops every setting is told") {
  std::vector<double> magnitudes(400, 0.5);
  magnitudes[7] = NAN;
  CHECK(tuned_from("torch", series_of(magnitudes)).stopped_by ==
        "1 step has infinities or NaN at every scale: no setting saves it.");
  replay::StepSeries wide = series_of(std::vector<double>(400, 0.5));
  wide.flushed = {{0, 100, 19, {50, 0}}};
  const replay::TunedPolicy torch = tuned_from("torch", wide);
  CHECK(!torch.within_target);
  CHECK(torch.stopped_by ==
        "Keeping it needs a scale of 1048576, at which 400 of 400 steps overflow.");
  CHECK(torch.trace.skipped.empty());  // what is flushed is no reason to skip all
  wide.seen.assign(400, {0x1p-10, 0});
  CHECK(tuned_from("os2s-backoff", wide).stopped_by ==
        "Keeping it needs a scale of 1048576, and it never grows beyond 16384 (scale_max).");
  wide.flushed = {{0, 100, 0, {50}}};
  CHECK(tuned_from("torch", wide).stopped_by ==
        "Even a scale of 2^40 flushes more than the target.");
  CHECK(tuned_from("torch", series_of(std::vector<double>(400, 0.5))).stopped_by.empty());
}

TEST_CASE("What a log tells within bounds alone is stopped by nothing") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.5));
  series.flushed = {{0, 100, 10, {{0, 8}, {0, 8}}}};  // zeros may have been flushed by the run
  const replay::TunedPolicy tuned = tuned_from("torch", series);
  CHECK(!tuned.within_target);
  CHECK(tuned.stopped_by.find("computed in FP16 when they were recorded") != std::string::npos);
  CHECK(tuned.stopped_by.find("Keeping it needs") == std::string::npos);
}

TEST_CASE("Where nobody knows what is flushed, a small scale is not as good as a larger one") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.5));
  series.flushed = {{0, 100, 0, {{0, 70}, {0, 70}}}};
  const replay::TunedPolicy tuned = tuned_from("torch,init_scale=1e-4,growth_interval=500", series);
  CHECK(!tuned.kept);
  CHECK(tuned.trace.scale_at(0) == 0x1p16);  // the largest that holds 0.5
  CHECK(tuned.trace.skipped.empty());
  CHECK(policy::number_of(tuned.trace.policy, "growth_interval") == 500);
}

TEST_CASE("Shares that differ by little at most are told apart by what is surely lost") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.01));
  for (std::size_t i = 20; i < 400; i += 20) series.seen[i] = {kInf, 0x1p16};
  // At 2^16 a little less may be flushed, which costs nineteen steps.
  series.flushed.push_back({0, 10000, 14, {{2, 5702}, {1, 5701}, {0, 5700}}});
  const replay::TunedPolicy tuned = tuned_from("torch,init_scale=2^24,growth_interval=20", series);
  CHECK(!tuned.kept);
  CHECK(tuned.trace.skipped.empty());
  CHECK(tuned.trace.unknown.size() == 19);
}

TEST_CASE("Without tables steps of which nothing is left are lost") {
  std::vector<double> magnitudes(500, 0.3);
  magnitudes.resize(560, NAN);
  magnitudes.resize(3560, 0.3);
  const replay::TunedPolicy tuned = tuned_from("torch", series_of(magnitudes));
  CHECK(!tuned.kept);
  // With its own 60 are skipped, and nothing is left of 3000.
  CHECK(tuned.trace.skipped.size() + tuned.trace.all_flushed.size() < 1000);
  CHECK(tuned.trace.final_scale > 1);
  CHECK(tuned.stopped_by.find("even the largest gradient is flushed") != std::string::npos);
}

TEST_CASE("Without tables no scale is advised at which gradients hardly are any") {
  std::vector<double> magnitudes;
  for (int i = 0; i < 600; ++i) magnitudes.push_back(0.1 * std::exp2(i / 20.0));
  const replay::TunedPolicy tuned = tuned_from("torch", series_of(magnitudes));
  CHECK(tuned.trace.scale_at(0) > 0.5);  // 2^-11 holds all of them
  CHECK(tuned.trace.skipped.size() < 28);
}

TEST_CASE("Without tables settings that lose nothing are kept") {
  const replay::StepSeries series = series_of(std::vector<double>(600, 0.001));
  CHECK(tuned_from("torch", series).kept);
  CHECK(!tuned_from("torch,init_scale=0.001", series).kept);
}

TEST_CASE("Settings with which training goes on are better than any with which it ends") {
  std::vector<double> magnitudes(40, 0x1p-10);
  magnitudes.resize(400, 1e6);
  replay::StepSeries series = series_of(magnitudes);
  const replay::TunedPolicy tuned = tuned_from("deepspeed,init_scale=2^10", series);
  CHECK(!tuned.trace.error);
}

TEST_CASE("A step that no attempt cures costs a policy that tries again one step") {
  std::vector<double> magnitudes(200, 0.5);
  magnitudes[100] = NAN;
  const replay::TunedPolicy tuned = tuned_from("nnabla,scale=2^30", series_of(magnitudes));
  CHECK(!tuned.kept);
  CHECK(tuned.trace.scale_at(0) < 0x1p30);
}

TEST_CASE("What drags a scale down is told, where there is room") {
  std::vector<double> magnitudes(300, 0.5);
  for (std::size_t i = 100; i < 200; ++i) magnitudes[i] = NAN;
  replay::StepSeries series = series_of(magnitudes);
  for (const std::int64_t step : {0, 250}) series.flushed.push_back({step, 100, -8, {100, 0}});
  const replay::TunedPolicy tuned = tuned_from("torch", series);
  CHECK(tuned.stopped_by.find("almost no headroom") == std::string::npos);
  CHECK(tuned.stopped_by.find("come from the model drag its own down to 2^-") != std::string::npos);
  CHECK(tuned.stopped_by.find("as it has no floor") != std::string::npos);
}

TEST_CASE("A target that leaves no room in a short run is told") {
  replay::StepSeries series = series_of(std::vector<double>(40, 1));
  series.flushed = {{0, 100, 14, {50, 0}}};  // nothing from 2^15 on, where 2^16 overflows
  CHECK(tuned_from("torch", series).stopped_by ==
        "Keeping it needs a scale of 32768, which leaves almost no headroom for larger gradients.");
}

TEST_CASE("Settings that hold every step, or flush little: not both") {
  std::vector<double> magnitudes(400, 0x1p-10);
  magnitudes[5] = 64;
  replay::StepSeries series = series_of(magnitudes);
  series.flushed = {{0, 100, 19, {50, 0}}};
  const replay::TunedPolicy tuned = tuned_from("torch", series);
  CHECK(tuned.within_target);
  CHECK(!tuned.trace.skipped.empty());
  CHECK(tuned.stopped_by.find("a scale of 512 or less, which flushes more than the target") !=
        std::string::npos);
}

TEST_CASE("Policies that are set to be static are not tuned") {
  const replay::StepSeries series = series_of({0.5, 0.5});
  for (const char* text :
       {"apex,loss_scale=128", "fastai1,dynamic=false", "fastai2,dynamic=false"}) {
    CHECK(!replay::tune(policy::make(text), series, {.target_underflow = 0.001}));
  }
}

TEST_CASE("Policies without these settings are not tuned") {
  const replay::StepSeries series = series_of({0.5, 0.5});
  for (const char* name : {"static", "als", "te-delayed", "os2s-logmax", "mxnet-static"}) {
    CHECK(!replay::tune(policy::make(name), series, {.target_underflow = 0.001}));
  }
}

TEST_CASE("Tuning over a million steps takes seconds") {
  std::vector<double> magnitudes;
  for (int i = 0; i < 1'000'000; ++i) magnitudes.push_back(std::exp2(std::sin(i * 0.37) * 6));
  const replay::StepSeries series = series_of(magnitudes);
  for (const char* name : {"torch", "megatron", "nnabla", "mxnet"}) {
    const auto start = std::chrono::steady_clock::now();
    const auto tuned = replay::tune(policy::make(name), series, {.target_underflow = 0.001});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    REQUIRE(tuned);
    CHECK(tuned->tried > 0);
    CHECK(took.count() < 30);  // 0.2 s on two idle cores
  }
}

TEST_CASE("Of settings that may lose as much, those that surely lose less are better") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.01));
  for (std::size_t i = 20; i < 400; i += 20) series.seen[i] = {kInf, 0x1p17};
  series.flushed.push_back({0, 100, 10, {{0, 8}, {0, 8}}});
  // Its own grows to 2^17 every 20 steps, and surely overflows there.
  const replay::TunedPolicy tuned = tuned_from("torch,growth_interval=10", series);
  CHECK(!tuned.kept);
  CHECK(tuned.trace.skipped.empty());
  CHECK(tuned.trace.unknown.size() == 19);
}

TEST_CASE("A smaller flushed share within the target is no reason for a step that surely is lost") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.01));
  series.seen[50] = {kInf, 0x1p15};
  series.flushed.push_back({0, 100000, 12, {8, 7, 6, 5, 4, 3, 2, 1, 0}});
  const replay::TunedPolicy tuned = tuned_from("torch,init_scale=2^30", series);
  CHECK(tuned.within_target);
  CHECK(tuned.trace.skipped.empty());
  CHECK(tuned.trace.unknown.size() == 1);
}

TEST_CASE("Above the target the share of all values lost decides") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.5));
  series.flushed.push_back({0, 1000, 16, {500, 499}});  // 2^17 costs the first step
  const replay::TunedPolicy tuned = tuned_from("torch,init_scale=2^30", series);
  CHECK(!tuned.within_target);
  CHECK(tuned.trace.skipped.empty());
}

TEST_CASE("Of bounds the lower one tells what a scale surely flushes") {
  replay::StepSeries series = series_of(std::vector<double>(400, 0.5));
  series.flushed.push_back({0, 100, 19, {{50, 60}, {0, 10}}});
  CHECK(tuned_from("torch", series).stopped_by ==
        "Keeping it needs a scale of 1048576, at which 400 of 400 steps overflow.");
}

}  // namespace
}  // namespace halfscope::analyzers::test_policy_tune
