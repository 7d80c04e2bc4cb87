// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/policy_facts.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/policy_series.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_policy_facts {
namespace {

constexpr double kInf = INFINITY, kNan = NAN;

double below(double x) { return std::nextafter(x, 0.0); }
double above(double x) { return std::nextafter(x, kInf); }

/// A series of steps 10, 20, ...
replay::StepSeries tens(const std::vector<replay::AttemptMagnitudes>& seen) {
  replay::StepSeries series;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    series.steps.push_back(static_cast<std::int64_t>(10 * i + 10));
  }
  series.seen = seen;
  return series;
}

TEST_CASE("A scale is written as a power of two where it is a large or a small one", "[table]") {
  const std::vector<std::pair<double, std::string>> rows = {
      {1, "1"},
      {65536, "65536"},
      {0x1p20, "1048576"},
      {0x1p21, "2^21"},
      {0.5, "2^-1"},
      {0x1p-4, "2^-4"},
      {0x1p-1074, "2^-1074"},
      {0x1p1023, "2^1023"},
      {0.3, "0.3"},
      {3, "3"},
      {0.75, "0.75"},
      {1000000, "1000000"},
      {0, "0"},
      {kInf, "inf"},
      {-2, "-2"},
      {0x1p20 - 1, "1048575"},
  };
  for (const auto& [scale, words] : rows) CHECK(replay::scale_words(scale) == words);
}

TEST_CASE("Steps are counted in words, one of them without an s") {
  CHECK(replay::steps_words(0) == "0 steps");
  CHECK(replay::steps_words(1) == "1 step");
  CHECK(replay::steps_words(2) == "2 steps");
  CHECK(replay::steps_words(12) == "12 steps");
}

TEST_CASE("A setting of DeepSpeed has the name of the configuration file beside its own") {
  for (const char* const name : {"deepspeed", "deepspeed-fused"}) {
    const policy::Policy policy = policy::make(name);
    CHECK(replay::setting_words(policy, "delayed_shift") ==
          "delayed_shift (hysteresis in the configuration file)");
    CHECK(replay::setting_words(policy, "min_scale") ==
          "min_scale (min_loss_scale in the configuration file)");
    CHECK(replay::setting_words(policy, "init_scale") == "init_scale");
  }
  // Megatron's floor has the same name and no such file.
  CHECK(replay::setting_words(policy::make("megatron"), "min_scale") == "min_scale");
  CHECK(replay::setting_words(policy::make("megatron"), "hysteresis") == "hysteresis");
}

TEST_CASE("The smallest scale is a normal number of what a framework keeps it in", "[table]") {
  for (const char* const tensor :  // a variable of binary32, or a C++ float
       {"torch", "apex-hysteresis", "megatron", "colossalai", "tf1", "tf-contrib", "keras2",
        "keras3", "os2s-backoff", "os2s-logmax", "jmp", "flax", "paddle", "mindspore-cell",
        "nvcaffe", "als", "te-delayed"}) {
    CAPTURE(tensor);
    CHECK(replay::smallest_scale(policy::make(tensor)) == 0x1p-126);
  }
  for (const char* const number :  // a number of Python
       {"static", "apex", "apex-legacy", "deepspeed", "deepspeed-fused", "fairseq", "metaseq",
        "fastai1", "fastai2", "nnabla", "nnabla-tutorial", "chainer", "mxnet", "mxnet-static",
        "mindspore"}) {
    CAPTURE(number);
    CHECK(replay::smallest_scale(policy::make(number)) == 0x1p-1022);
  }
}

TEST_CASE("The index of a step is that of the first step that is no earlier") {
  const replay::StepSeries series = tens(std::vector<replay::AttemptMagnitudes>(3));
  CHECK(replay::index_of(series, 10) == 0);
  CHECK(replay::index_of(series, 20) == 1);
  CHECK(replay::index_of(series, 30) == 2);
  CHECK(replay::index_of(series, 5) == 0);
  CHECK(replay::index_of(series, 11) == 1);
  CHECK(replay::index_of(series, 31) == 3);  // none
  CHECK(replay::index_of(replay::StepSeries(), 10) == 0);
}

TEST_CASE("A smaller scale would have helped unless gradients are infinite at every scale") {
  const std::vector<std::pair<replay::AttemptMagnitudes, bool>> rows = {
      {{1, 0}, true},          {{0, 0}, true},
      {{1e300, 0}, true},      {{kInf, 1024}, true},  // below 1024 nobody knows
      {{kNan, 0x1p-20}, true}, {{kInf, kInf}, true},  // at a scale that is not recorded
      {{kInf, 0}, false},      {{kNan, 0}, false},
  };
  std::vector<replay::AttemptMagnitudes> seen;
  for (const auto& [one, helps] : rows) seen.push_back(one);
  const replay::StepSeries series = tens(seen);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i);
    CHECK(replay::by_scale(series, series.steps[i]) == rows[i].second);
  }
}

TEST_CASE("The largest power of two that holds a step stays below 65520 over its magnitude",
          "[table]") {
  struct Row {
    const char* what;
    replay::AttemptMagnitudes seen;
    double power;
    bool sure;
  };
  const Row row = GENERATE(values<Row>({
      {"the largest binary16 number is held at 1", {65504, 0}, 1, true},
      {"65520 rounds to infinity", {65520, 0}, 0.5, true},
      {"below it, 65504 is nearest", {below(65520), 0}, 1, true},
      {"32768, where 65536 overflows", {1, 0}, 0x1p15, true},
      {"65520 / 2^16 at 2^16 is the tie", {65520 * 0x1p-16, 0}, 0x1p15, true},
      {"one ulp less is not: 65520 over it is 2^16 and an ulp",
       {below(65520 * 0x1p-16), 0},
       0x1p16,
       true},
      {"one ulp more: its logarithm rounds to 16", {above(65520 * 0x1p-16), 0}, 0x1p15, true},
      {"1.9 * 2^1023 is held at 2^-1008: 1.9 * 2^15", {0x1.ep1023, 0}, 0x1p-1008, true},
      {"all ones are not", {0x1.fffffffffffffp1023, 0}, 0x1p-1009, true},
      {"any scale holds zeros", {0, 0}, kInf, true},
      {"infinite at 1024: half of it may hold", {kInf, 1024}, 512, false},
      {"at no power of two: the next below", {kInf, 1000}, 512, false},
      {"above one", {kInf, above(1024)}, 1024, false},
      {"NaN at 2^-10", {kNan, 0x1p-10}, 0x1p-11, false},
      {"at a scale that is not recorded", {kInf, kInf}, kInf, false},
  }));
  CAPTURE(row.what);
  const replay::StepSeries series = tens({{1, 0}, row.seen, {2, 0}});
  CHECK(replay::holds(series, 20).power == row.power);
  CHECK(replay::holds(series, 20).sure == row.sure);
}

TEST_CASE("A power of two that holds is written with what is not known of it") {
  CHECK(replay::Holds{0x1p-4, true}.text() == "2^-4");
  CHECK(replay::Holds{512, true}.text() == "512");
  CHECK(replay::Holds{512, false}.text() ==
        "at most 512 (how much less is unknown: what was recorded is infinite)");
  CHECK(replay::Holds().text() == "inf");
}

TEST_CASE("Overflow by the scale lowers it to a sixteenth of what a step needs, at least",
          "[table]") {
  struct Row {
    const char* what;
    replay::ScaleRuns scale;
    std::vector<std::int64_t> skipped;
    double least;
  };
  // 10: 2^10 is held at 32, as 65520 / 1024 is 63.98; 20: 1 at 2^15; 30: 512 may hold; 40, 50: no
  // scale does.
  const replay::StepSeries series = tens({{1024, 0}, {1, 0}, {kInf, 1024}, {kNan, 0}, {kInf, 0}});
  const Row row = GENERATE(values<Row>({
      {"nothing is skipped: the first scale", {{0, 65536}, {3, 8}}, {}, 65536},
      {"nothing was replayed", {}, {}, 0},
      {"32 over 16", {{0, 65536}}, {10}, 2},
      {"2^15 over 16", {{0, 65536}}, {20}, 2048},
      {"512 over 16", {{0, 65536}}, {30}, 32},
      {"the least of several", {{0, 65536}}, {20, 10, 30}, 2},
      {"it starts lower", {{0, 1}}, {10}, 1},
      {"steps that no scale holds lower it in vain", {{0, 65536}}, {40, 50}, 65536},
      {"they are not looked at", {{0, 65536}}, {20, 40, 50}, 2048},
  }));
  CAPTURE(row.what);
  replay::Trace trace;
  trace.scale = row.scale;
  trace.skipped = row.skipped;
  CHECK(replay::least_by_overflow(trace, series) == row.least);
}

double lowest_of(const replay::Trace& trace) {
  double lowest = kInf;
  for (const auto& [index, scale] : trace.scale) lowest = std::min(lowest, scale);
  return lowest;
}

TEST_CASE("A replay that overflows by the scale alone goes no lower, one with NaN does") {
  for (const char* const policy :
       {"torch", "torch,backoff_factor=0.0625", "apex", "megatron", "deepspeed", "tf1", "mxnet"}) {
    for (const double magnitude : {1024.0, 3.0, 65520 * 0x1p-10, below(65520 * 0x1p-10)}) {
      CAPTURE(policy, magnitude);
      std::vector<double> steps(100, magnitude);
      const replay::StepSeries finite = series_of(steps);
      const replay::Trace by_scale = replay::replay(policy::make(policy), finite);
      CHECK(!by_scale.skipped.empty());
      CHECK(lowest_of(by_scale) >= replay::least_by_overflow(by_scale, finite));
    }
  }
  std::vector<double> steps(60, 1024.0);
  std::fill(steps.begin() + 20, steps.end(), kNan);
  const replay::StepSeries diverging = series_of(steps);
  const replay::Trace dragged = replay::replay(policy::make("torch"), diverging);
  CHECK(replay::least_by_overflow(dragged, diverging) == 2);
  CHECK(lowest_of(dragged) == 0x1p-34);  // 2^5 at step 20, and 39 halvings after it
}

}  // namespace
}  // namespace halfscope::analyzers::test_policy_facts
