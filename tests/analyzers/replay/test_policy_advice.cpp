// SPDX-License-Identifier: Apache-2.0
// Traps.
#include <nlohmann/json.hpp>

#include "analyzers/replay/policy_study.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/policy_series.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_policy_advice {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The pitfalls of one policy, by id.
std::vector<replay::Pitfall> found(const replay::StepSeries& series, const std::string& policy,
                                   const char* id) {
  std::vector<replay::Trace> traces;
  if (!policy.empty()) traces.push_back(replay::replay(policy::make(policy), series));
  std::vector<replay::Pitfall> all = replay::pitfalls(series, traces);
  std::erase_if(all, [&](const replay::Pitfall& pitfall) { return name_of(pitfall.kind) != id; });
  return all;
}

bool says(const std::vector<replay::Pitfall>& pitfalls, std::string_view part) {
  return pitfalls.size() == 1 && pitfalls[0].text().find(part) != std::string::npos;
}

TEST_CASE("Trap: a floor above the scale that is needed") {
  const replay::StepSeries series = series_of(std::vector<double>(60, 1e6));
  const auto tf = found(series, "tf1", "floor");
  CHECK(says(tf, "a scale of 2^-4 would hold them"));
  CHECK(says(found(series, "megatron,initial_scale=1024", "floor"), "Set min_scale to 2^-4"));
  CHECK(says(found(series, "deepspeed-fused,init_scale=16", "floor"),
             "Set min_scale (min_loss_scale in the configuration file) to 0, or divide"));
  CHECK(found(series, "torch", "floor").empty());
  CHECK(found(series_of(std::vector<double>(60, NAN)), "tf1", "floor").empty());
}

TEST_CASE("Trap: a floor counts no step that no scale cures") {
  std::vector<double> magnitudes(60, NAN);
  for (const std::size_t i : {40, 50, 59}) magnitudes[i] = 1e6;
  CHECK(says(found(series_of(magnitudes), "tf1", "floor"), "and 3 steps overflow there"));
  replay::StepSeries unsure = series_of(std::vector<double>(60, NAN));
  unsure.seen[59] = {1e6, 0};
  CHECK(says(found(unsure, "tf1", "floor"), "and 1 step overflows there"));
}

TEST_CASE("Trap: infinities of the model drag the scale below what gradients need") {
  std::vector<double> magnitudes(100, 0.5);
  for (std::size_t i = 20; i < 60; ++i) magnitudes[i] = NAN;
  const auto pitfall = found(series_of(magnitudes), "torch", "dragged");
  CHECK(says(pitfall, "40 steps had infinities or NaN that no scale cures"));
  CHECK(says(pitfall, "down to 2^-24 from 65536 at step 20"));
  CHECK(says(pitfall, "At 40 steps after that"));
  CHECK(says(pitfall, "at 40 of them every gradient is flushed to zero"));
  CHECK(says(pitfall, "one with a floor"));
  replay::StepSeries run = series_of(magnitudes);  // of the run itself too
  for (std::size_t i = 0; i < 100; ++i) {
    run.recorded_scale.emplace_back(i < 20   ? 65536
                                    : i < 60 ? std::exp2(35.0 - double(i))
                                             : 0x1p-24);
    run.recorded_skip.emplace_back(i >= 20 && i < 60);
  }
  CHECK(says(found(run, "", "dragged"), "down to 2^-24 from"));
  CHECK(found(series_of(magnitudes), "tf1", "dragged").empty());
  std::vector<double> needed(60, 1e12);  // by overflow
  needed.resize(100, 0.01);
  needed[10] = NAN;
  CHECK(found(series_of(needed), "torch", "dragged").empty());
}

TEST_CASE("Trap: an exception at the floor") {
  const auto pitfall = found(series_of(std::vector<double>(60, 1e6)), "deepspeed", "exception");
  CHECK(says(pitfall, "Current loss scale already at minimum"));
  CHECK(says(pitfall, "A scale of 2^-4 would have held"));
  CHECK(says(found(series_of(std::vector<double>(60, NAN)), "fairseq", "exception"),
             "No scale would have helped"));
}

TEST_CASE("Traps name no scale that nobody knows to hold, and rest on no unknown step") {
  replay::StepSeries series = series_of(std::vector<double>(60, kInf));
  for (replay::AttemptMagnitudes& seen : series.seen) seen.overflow_from = 0x1p-3;
  CHECK(says(found(series, "tf1", "floor"), "a scale of at most 2^-4 (how much less"));
  CHECK(says(found(series, "deepspeed", "exception"), "A scale of at most 2^-4 (how much less"));
  for (replay::AttemptMagnitudes& seen : series.seen)
    seen.overflow_from = 4;  // below it nobody knows
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
  const auto pitfall = found(series_of(magnitudes), "nnabla", "exception");
  CHECK(says(pitfall, "Its scale was 0 by then"));
  CHECK(says(pitfall, "that no scale cures"));
  CHECK(pitfall.at(0).text().find("floor,") == std::string::npos);
  CHECK(says(found(series_of(std::vector<double>(60, 1e6)), "deepspeed", "exception"),
             "lower min_scale"));
}

TEST_CASE("Trap: hysteresis that refills only at growth") {
  const replay::StepSeries series = series_of(std::vector<double>(40, 0.5));
  const auto pitfall =
      found(series, "megatron,initial_scale=65536,growth_interval=4", "hysteresis");
  CHECK(says(pitfall, "Set hysteresis=1."));
  CHECK(pitfall.at(0).step == 4);
  CHECK(found(series, "megatron,initial_scale=65536,growth_interval=4,hysteresis=1", "hysteresis")
            .empty());
  CHECK(found(series, "torch,growth_interval=4", "hysteresis").empty());
}

TEST_CASE("Trap: hysteresis that no second overflow followed is none") {
  std::vector<double> magnitudes(40, 0.5);
  magnitudes[10] = NAN;
  magnitudes[20] = 1e6;
  CHECK(found(series_of(magnitudes), "megatron,initial_scale=1024,hysteresis=4", "hysteresis")
            .empty());
  magnitudes[21] = 1e6;
  CHECK(says(found(series_of(magnitudes), "megatron,initial_scale=1024,hysteresis=4", "hysteresis"),
             "step 20 first"));
}

TEST_CASE("Trap: collapse to zero, and NaN that no scale cures") {
  const replay::StepSeries series = series_of(std::vector<double>(400, NAN));
  CHECK(says(found(series, "torch", "zero"), "The model makes them"));
  CHECK(says(found(series, "torch", "nan_in_model"), "no loss scale cures"));
  CHECK(found(series_of({1, 1}), "torch", "nan_in_model").empty());
}

TEST_CASE("Trap: stuck at infinity") {
  const replay::StepSeries series = series_of(std::vector<double>(400, 0.0));
  CHECK(says(found(series, "keras3,dynamic_growth_steps=1", "infinity"), "stays there"));
  CHECK(found(series, "torch,growth_interval=1", "infinity").empty());
}

TEST_CASE("Trap: infinities applied") {
  const replay::StepSeries series = series_of(std::vector<double>(20, NAN));
  CHECK(says(found(series, "fastai1,loss_scale=4", "applied"), "At a scale of 1 or less"));
  CHECK(says(found(series, "mxnet-static", "applied"), "It never checks"));
  CHECK(found(series, "torch", "applied").empty());
}

TEST_CASE("Trap: a run that applied what no scale cures is told to look for the origin") {
  replay::StepSeries series = series_of({0.5, NAN, NAN});
  series.recorded_scale = {1.0, 1.0, 1.0};
  series.recorded_skip = {false, false, false};
  CHECK(says(found(series, "", "applied"), "No loss scale cures them"));
  series.seen[1] = {kInf, 1};
  CHECK(says(found(series, "", "applied"), "Use a policy that skips such steps"));
}

TEST_CASE("Trap: NNabla's retries cost what no run wins back") {
  const auto pitfall = found(series_of({0.5, NAN, 0.5}), "nnabla", "retries");
  CHECK(says(pitfall, "it falls by 2^101"));
  CHECK(pitfall.at(0).step == 1);
  CHECK(found(series_of({0.5, 1e6, 0.5}), "nnabla", "retries").empty());
}

TEST_CASE("Trap: a scale that was not in the checkpoint") {
  replay::StepSeries series = series_of(std::vector<double>(6, 0.01));
  series.recorded_scale = {128.0, 256.0, 256.0, 65536.0, 65536.0, 131072.0};
  const auto pitfall = found(series, "", "not_in_checkpoint");
  CHECK(says(pitfall, "from 256 to 65536 at step 3"));
  series.recorded_scale = {128.0, 256.0, 256.0, 512.0, 256.0, 128.0};
  CHECK(found(series, "", "not_in_checkpoint").empty());
}

TEST_CASE("Trap: a scale that comes back from zero, or from infinity, was set anew") {
  replay::StepSeries series = series_of(std::vector<double>(6, 0.01));
  series.recorded_scale = {128.0, 0.0, 0.0, 65536.0, 65536.0, 131072.0};
  CHECK(says(found(series, "", "not_in_checkpoint"),
             "from 0 to 65536 at step 3, where no policy comes back from"));
  series.recorded_scale = {128.0, kInf, kInf, kInf, 65536.0, 65536.0};
  CHECK(says(found(series, "", "not_in_checkpoint"), "from inf to 65536 at step 4"));
  series.recorded_scale = {128.0, 0x1p-149, std::nullopt, 65536.0, 65536.0, 65536.0};
  CHECK(says(found(series, "", "not_in_checkpoint"), "from 2^-149 to 65536 at step 3"));
  series.recorded_scale = {128.0, 256.0, std::nullopt, std::nullopt, 2048.0, 2048.0};
  CHECK(found(series, "", "not_in_checkpoint").empty());  // each step may have doubled it
  series.recorded_scale = {128.0, 0.0, 0.0, 0.0, 0.0, 0.0};
  CHECK(found(series, "", "not_in_checkpoint").empty());
}

/// A run of torch, or of a rule that is not known, by its scales; nothing overflows.
replay::StepSeries clean_run(const std::vector<double>& scales, const std::string& settings = "") {
  replay::StepSeries series = series_of(std::vector<double>(scales.size(), 0.001));
  series.recorded_scale.assign(scales.begin(), scales.end());
  series.recorded_skip.assign(scales.size(), false);
  if (!settings.empty()) {
    series.manifest.emplace();
    (*series.manifest->about)["loss_scaling"] = nlohmann::json::parse(settings);
  }
  return series;
}

TEST_CASE("Trap: a scale that falls to its start without an overflow was not in the checkpoint") {
  const char* const torch = R"({"policy":"torch","init_scale":65536.0})";
  const std::vector<double> scales = {0x1p18, 0x1p18, 0x1p18, 0x1p18, 0x1p16, 0x1p16};
  replay::StepSeries series = clean_run(scales, torch);
  const auto pitfall = found(series, "", "not_in_checkpoint");
  CHECK(says(pitfall, "falls from 262144 to 65536, where it starts, at step 4, although no step"));
  CHECK(pitfall.at(0).step == 4);

  series.recorded_skip[3] = true;  // by an overflow, the last two steps tell
  CHECK(found(series, "", "not_in_checkpoint").empty());
  series.recorded_skip[3] = false;
  series.recorded_skip[2] = true;  // MXNet's scale falls one step late
  CHECK(found(series, "", "not_in_checkpoint").empty());
  series.recorded_skip[2].reset();
  CHECK(found(series, "", "not_in_checkpoint").empty());
  series.recorded_skip[2] = false;
  series.seen[3].max_abs = 1;  // would overflow at 2^18
  CHECK(found(series, "", "not_in_checkpoint").empty());

  // Elsewhere than to the start, and a policy that tries a step again at a smaller scale.
  const std::vector<double> elsewhere = {0x1p18, 0x1p18, 0x1p18, 0x1p18, 0x1p15, 0x1p15};
  CHECK(found(clean_run(elsewhere, torch), "", "not_in_checkpoint").empty());
  const char* const nnabla = R"({"policy":"nnabla","scale":65536.0})";
  CHECK(found(clean_run(scales, nnabla), "", "not_in_checkpoint").empty());
}

TEST_CASE("Trap: of a rule that is not known, a fall to the first scale alone is a reset") {
  const std::vector<double> reset = {64, 128, 256, 256, 256, 64, 64};
  CHECK(says(found(clean_run(reset), "", "not_in_checkpoint"), "falls from 256 to 64"));
  const std::vector<double> lowered = {64, 128, 256, 256, 256, 64, 64, 64, 32};
  CHECK(found(clean_run(lowered), "", "not_in_checkpoint").empty());
  replay::StepSeries late = clean_run(reset);
  for (std::int64_t& step : late.steps) step += 100;  // nobody knows where it started
  CHECK(found(late, "", "not_in_checkpoint").empty());
}

TEST_CASE("Trap: growth by a factor that the log shows again and again is no reset") {
  const std::vector<double> regular = {1, 1, 32, 32, 1024, 1024, 32768, 32768};
  CHECK(found(clean_run(regular), "", "not_in_checkpoint").empty());
  const std::vector<double> irregular = {1, 1, 32, 32, 1024, 1024, 1024, 32768};
  CHECK(says(found(clean_run(irregular), "", "not_in_checkpoint"),
             "from 1 to 32 at step 2, which is more than any policy known here"));
  const std::vector<double> twice = {1, 1, 32, 32, 1024, 1024};
  CHECK(found(clean_run(twice), "", "not_in_checkpoint").size() == 1);
}

TEST_CASE("Trap: how much a scale may grow at once is a setting of its policy") {
  const std::vector<double> doubled = {1024, 1024, 1024, 2048, 2048};
  const char* const slow = R"({"policy":"torch","init_scale":1024.0,"growth_factor":1.5})";
  CHECK(says(found(clean_run(doubled, slow), "", "not_in_checkpoint"), "or the scale was set by"));
  const std::vector<double> grown = {1024, 1024, 1024, 1536, 1536};
  CHECK(found(clean_run(grown, slow), "", "not_in_checkpoint").empty());
  const std::vector<double> fourfold = {1024, 1024, 1024, 4096, 4096};
  const char* const fast = R"({"policy":"deepspeed","init_scale":1024,"scale_factor":4})";
  CHECK(found(clean_run(fourfold, fast), "", "not_in_checkpoint").empty());
  const char* const paddle = R"({"policy":"paddle","init_loss_scaling":1024,"incr_ratio":4.0})";
  CHECK(found(clean_run(fourfold, paddle), "", "not_in_checkpoint").empty());
}

TEST_CASE("Trap: a scale at its floor is no sign of hysteresis") {
  std::vector<double> magnitudes(10, 0x1p20);
  magnitudes.resize(60, 0x1p10);
  const auto pitfall =
      found(series_of(magnitudes), "megatron,initial_scale=2,growth_interval=20", "hysteresis");
  CHECK(says(pitfall, "1 of 10 skipped steps did not lower the scale, step 0 first"));
}

TEST_CASE("Trap: an overflow that no recorded gradient explains") {
  replay::StepSeries series = series_of({0.5, kInf, 0.5});
  series.seen[1].overflow_from = 1024;
  series.recorded_scale = {1024.0, 1024.0, 512.0};
  series.unexplained = {{1, 0.5}};
  const auto pitfall = found(series, "", "norm_overflow");
  CHECK(says(pitfall, "they reach 0.5 and 65520 over the scale is 63.98"));
  CHECK(pitfall.at(0).step == 1);
}

}  // namespace
}  // namespace halfscope::analyzers::test_policy_advice
