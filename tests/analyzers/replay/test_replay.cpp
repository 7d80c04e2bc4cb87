// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "analyzers/replay/replay.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "analyzers/logs.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "analyzers/series_in.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_replay {
namespace {

using test::record_of;
using test::TempFolder;

constexpr double kInf = std::numeric_limits<double>::infinity();
using Steps = std::vector<std::int64_t>;

replay::StepSeries series_of(const std::vector<double>& magnitudes) {
  replay::StepSeries series;
  series.from_magnitudes = true;
  for (const double m : magnitudes) {
    series.steps.push_back(static_cast<std::int64_t>(series.seen.size()));
    series.seen.push_back({m, 0});
  }
  return series;
}

std::vector<double> magnitudes_of(std::size_t n, double nan_share = 0.002) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> log2_of(-1, 1.5);
  std::vector<double> all;
  for (std::size_t i = 0; i < n; ++i) {
    const bool broken = static_cast<double>(random() >> 11) * 0x1p-53 < nan_share;
    all.push_back(broken ? NAN : static_cast<double>(static_cast<float>(exp2(log2_of(random)))));
  }
  return all;
}

replay::Trace replay_text(const std::string& policy, const std::vector<double>& magnitudes) {
  return replay::replay(policy::make(policy), series_of(magnitudes));
}

TEST_CASE("Overflow is decided without rounding a product") {
  CHECK(replay::judge({65520, 0}, 1) == replay::OverflowVerdict::overflow);
  CHECK(replay::judge({std::nextafter(65520, 0), 0}, 1) == replay::OverflowVerdict::clean);
  // The product rounds to 65520 and is below it.
  const double third = 1.0 / 3, scale = 65520 * 3.0;
  REQUIRE(third * scale == 65520);
  CHECK(replay::judge({third, 0}, scale) == replay::OverflowVerdict::clean);
  CHECK(replay::judge({std::nextafter(third, 1), 0}, scale) == replay::OverflowVerdict::overflow);
  CHECK(replay::judge({0, 0}, kInf) == replay::OverflowVerdict::overflow);
  CHECK(replay::judge({NAN, 0}, 1e-300) == replay::OverflowVerdict::overflow);
  CHECK(replay::judge({kInf, 1024}, 1024) == replay::OverflowVerdict::overflow);
  CHECK(replay::judge({kInf, 1024}, 512) == replay::OverflowVerdict::unknown);
  CHECK(replay::judge({kInf, 1024}, 0) == replay::OverflowVerdict::clean);
}

TEST_CASE("torch over a short series, step by step") {
  const replay::Trace trace =
      replay_text("torch,init_scale=65536,growth_interval=4", {.5, .5, .5, .5, .5, .5, NAN, .5});
  CHECK(trace.length == 8);
  CHECK(trace.skipped == Steps{4, 6});
  CHECK(trace.overflow == Steps{4, 6});
  CHECK(trace.scale == replay::ScaleRuns{{0, 65536}, {4, 131072}, {5, 65536}, {7, 32768}});
  CHECK(trace.final_scale == 32768);
  CHECK(trace.scale_at(3) == 65536);
  CHECK(trace.scale_at(4) == 131072);
  CHECK(trace.model_nan_skips == 1);
  CHECK(trace.outcome == replay::TraceOutcome::ran);
}

TEST_CASE("Below the scale an infinity was computed at, a step is unknown and leaves no trace") {
  replay::StepSeries series = series_of({0.5, kInf, 0.5});
  series.seen[1].overflow_from = 65536;
  const replay::Trace below = replay::replay(policy::make("torch,init_scale=32768"), series);
  CHECK(below.unknown == Steps{1});
  CHECK(below.skipped.empty());
  CHECK(below.overflow.empty());
  CHECK(below.final_scale == 32768);
  CHECK(below.lost_share() == 1.0 / 3);
  // No clean step either: two of these make it grow, the third is the unknown one.
  CHECK(
      replay::replay(policy::make("torch,init_scale=512,growth_interval=3"), series).final_scale ==
      512);
  CHECK(
      replay::replay(policy::make("torch,init_scale=512,growth_interval=2"), series).final_scale ==
      1024);
  const replay::Trace above = replay::replay(policy::make("torch,init_scale=65536"), series);
  CHECK(above.unknown.empty());
  CHECK(above.overflow == Steps{1});
  const replay::Trace lower = replay::replay(policy::make("mxnet-static"), series);
  CHECK(lower.applied_nonfinite.empty());
  CHECK(lower.unknown == Steps{1});
  series.seen[1].overflow_from = 128;
  const replay::Trace never = replay::replay(policy::make("mxnet-static"), series);
  CHECK(never.skipped.empty());
  CHECK(never.applied_nonfinite == Steps{1});
}

TEST_CASE("Unknown steps alone lower no scale, end no training and collapse nothing") {
  replay::StepSeries series = series_of(std::vector<double>(600, kInf));
  for (replay::AttemptMagnitudes& seen : series.seen) seen.overflow_from = 0x1p40;
  series.seen[0] = {0.5, 0};
  for (const policy::Policy& known : policy::all()) {
    const policy::Info& info = policy::info_of(known);
    if (info.needs == policy::Needs::tensors || info.needs == policy::Needs::layers) continue;
    INFO(info.name);
    const replay::Trace trace = replay::replay(known, series);
    CHECK(trace.unknown.size() == 599);
    CHECK(trace.skipped.size() + trace.overflow.size() <= 2);  // 0.5 at 2^24 overflows
    CHECK(trace.outcome == replay::TraceOutcome::ran);
    CHECK(trace.scale.size() <= 2);
    CHECK(trace.lost_share() > 0.99);
  }
}

TEST_CASE("A retry ends where it is unknown") {
  replay::StepSeries series = series_of({0.5, kInf, 0.5});
  series.seen[1].overflow_from = 1024;
  const replay::Trace trace = replay::replay(policy::make("nnabla,scale=4096"), series);
  CHECK(trace.attempts == std::map<std::size_t, std::uint32_t>{{1, 4}});  // 4096 to 512
  CHECK(trace.final_scale == 512);
  CHECK(trace.overflow == Steps{1});
  CHECK(trace.unknown == Steps{1});
  CHECK(trace.skipped.empty());
}

TEST_CASE("NNabla tries a step again, with what each attempt saw where the log says") {
  replay::StepSeries series = series_of({0.5, 64, 0.5});
  const auto nnabla = policy::make("nnabla,scale=4096");
  const replay::Trace same = replay::replay(nnabla, series);
  CHECK(same.attempts == std::map<std::size_t, std::uint32_t>{{1, 4}});  // down to 512
  CHECK(same.final_scale == 512);
  CHECK(same.skipped.empty());
  CHECK(same.overflow == Steps{1});
  series.retried[1] = {{64, 0}, {0.25, 0}};
  const replay::Trace own = replay::replay(nnabla, series);
  CHECK(own.attempts == std::map<std::size_t, std::uint32_t>{{1, 2}});
  CHECK(own.final_scale == 2048);
}

TEST_CASE("Fates") {
  const std::vector<double> nan(400, NAN), large(20, 1e6), zero(400, 0.0);
  CHECK(replay_text("torch", nan).outcome == replay::TraceOutcome::zero);
  CHECK(replay_text("torch", nan).model_nan_skips == 400);
  CHECK(replay_text("keras3,dynamic_growth_steps=1", zero).outcome ==
        replay::TraceOutcome::infinity);
  CHECK(replay_text("megatron,growth_interval=1", zero).outcome == replay::TraceOutcome::infinity);
  CHECK(replay_text("keras2", std::vector<double>(40, 1e6)).outcome == replay::TraceOutcome::floor);
  CHECK(replay_text("tf1", std::vector<double>(40, 1e6)).outcome == replay::TraceOutcome::floor);
  CHECK(replay_text("static,scale=1024", large).outcome == replay::TraceOutcome::ran);
  const replay::Trace ended = replay_text("deepspeed,init_scale=4", large);
  CHECK(ended.outcome == replay::TraceOutcome::error);
  REQUIRE(ended.error);
  CHECK(ended.error->step == 2);
  CHECK(ended.length == 3);
  CHECK(ended.skipped == Steps{0, 1, 2});
}

TEST_CASE("FP8 delayed scaling saturates and never skips") {
  const replay::Trace trace =
      replay_text("te-delayed,amax_history_len=4", {1, 2, .5, 0, 8, kInf, 1, 1, 1, 1, 1, 1e-38});
  // Known answers, made with Transformer Engine's functions: the scale after each step.
  const std::vector<double> after = {57344, 28672, 28672, 28672, 7168,  7168,
                                     7168,  7168,  7168,  57344, 57344, 57344};
  for (std::size_t i = 1; i < after.size(); ++i) CHECK(trace.scale_at(i) == after[i - 1]);
  CHECK(trace.skipped.empty());
  // 2 at 57344 and 8 at 28672 are beyond; 61440 is where rounding leaves E5M2.
  CHECK(trace.overflow == Steps{1, 4, 5});
}

TEST_CASE("Policies that need more than there is say what") {
  const replay::StepSeries plain = series_of({1, 2});
  const replay::Trace als = replay::replay(policy::make("als"), plain);
  CHECK(als.unavailable.starts_with("needs the mean, standard deviation"));
  CHECK(als.unavailable.find("plain series") != std::string::npos);
  replay::StepSeries log = plain;
  log.from_magnitudes = false;
  CHECK(
      replay::replay(policy::make("te-delayed"), log).unavailable.starts_with("needs the largest"));
  log.tensors.push_back({"activation_grad/a", log::Role::activation_grad, {4}, true, 1, {{0, 1}}});
  CHECK(replay::replay(policy::make("te-delayed"), log).unavailable.find("none at step 1") !=
        std::string::npos);
  log.tensors[0].steps.push_back({1, 2});
  const replay::Trace delayed = replay::replay(policy::make("te-delayed"), log);
  CHECK(delayed.unavailable.empty());
  CHECK(delayed.final_scale == 28672);
}

/// Two layers, "a" before "b": the gradient of b's output comes first.
replay::StepSeries two_layers() {
  replay::StepSeries series = series_of({1e-5, 1e-5, 1e-5});
  series.from_magnitudes = false;
  using log::Role;
  series.tensors.push_back({"activation/a", Role::activation, {}, true, 1, {}});
  series.tensors.push_back({"activation/b", Role::activation, {}, true, 1, {}});
  // Known answer, seed 0 of the original: 8 without, 4 with 256 before it.
  const replay::TensorFacts weight{0, 0.2, 1, -3.12023e-05, .049908};
  const replay::TensorFacts gradient{0, 4e-5, 1, -1.56932e-07, 9.87338e-06};
  for (const char* name : {"a", "b"}) {
    series.tensors.push_back(
        {std::string("weight/") + name + ".weight", Role::weight, {128, 256}, true, 1, {weight}});
    series.tensors.push_back(
        {std::string("activation_grad/") + name, Role::activation_grad, {64}, true, 1, {gradient}});
  }
  return series;
}

TEST_CASE("Adaptive loss scaling multiplies the factors of layers, backward") {
  const replay::Trace trace = replay::replay(policy::make("als"), two_layers());
  REQUIRE(trace.unavailable.empty());
  REQUIRE(trace.parts.size() == 2);
  CHECK(trace.parts[0].first == "activation_grad/b");
  CHECK(trace.parts[0].second == replay::ScaleRuns{{0, 8}});
  CHECK(trace.parts[1].first == "activation_grad/a");
  // 12.14 / 8 for the gradient that comes in at 8: 1.
  CHECK(trace.parts[1].second == replay::ScaleRuns{{0, 8}});
  CHECK(trace.length == 3);
  CHECK(trace.overflow.empty());
}

TEST_CASE("Adaptive loss scaling sees infinities between tables") {
  replay::StepSeries series = two_layers();
  series.seen[1] = {kInf, 4096};
  replay::Trace trace = replay::replay(policy::make("als"), series);
  CHECK(trace.unknown == Steps{1});
  CHECK(trace.lost_share() == 1.0 / 3);
  CHECK(!trace.error);
  CHECK(trace.final_scale == 8);
  series.seen[1] = {kInf, 8};  // at the scale it has
  trace = replay::replay(policy::make("als"), series);
  CHECK(trace.overflow == Steps{1});
  REQUIRE(trace.error);
  CHECK(trace.error->step == 1);
  // A table of the infinite step tells nothing of the steps after it.
  series = two_layers();
  series.seen[0] = {kInf, 4096};
  for (replay::TensorSeries& tensor : series.tensors) {
    if (tensor.role != log::Role::activation_grad) continue;
    tensor.steps.push_back(tensor.steps[0]);
    tensor.steps[0].max_abs = kInf;
    tensor.steps[1].step = 2;
  }
  trace = replay::replay(policy::make("als"), series);
  CHECK(trace.unknown == Steps{0});
  CHECK(!trace.error);
  CHECK(trace.final_scale == 8);
}

TEST_CASE("Adaptive loss scaling knows no finite gradients between tables but small ones") {
  replay::StepSeries series = two_layers();
  series.seen[1] = {1e4, 0};  // 8e4 at the scales it has, which would have been others
  replay::Trace trace = replay::replay(policy::make("als"), series);
  CHECK(trace.unknown == Steps{1});
  CHECK(!trace.error);
  CHECK(trace.final_scale == 8);
  series.seen[1] = {8e3, 0};
  CHECK(replay::replay(policy::make("als"), series).unknown.empty());
  series.seen[1].partial = true;
  CHECK(replay::replay(policy::make("als"), series).unknown == Steps{1});
  series.seen[1] = {kInf, 8};
  series.seen[0] = {1e4, 0};  // a table decides
  CHECK(replay::replay(policy::make("als"), series).unknown.empty());
}

TEST_CASE("The mean and the worst flushed share are of the steps that have tables") {
  replay::StepSeries series = series_of({.5, .5, .5});
  series.flushed.push_back({0, 10, 0, {10, 4, 0}});
  series.flushed.push_back({2, 10, 0, {10, 8, 6, 0}});
  const replay::Trace trace = replay::replay(policy::make("static,scale=2"), series);
  REQUIRE(trace.mean_flushed);
  CHECK(trace.mean_flushed->second == 0.6000000000000001);
  CHECK(trace.worst_flushed->second == 0.8);
  CHECK(trace.worst_step == 2);
}

/// A run driven by a policy over these magnitudes, computed in FP16 at its scale: infinite where it
/// overflows. Every attempt is kept where there is more than one.
replay::StepSeries driven(const std::string& text, const nlohmann::json& about,
                          const std::vector<double>& magnitudes) {
  const TempFolder folder;
  log::Manifest manifest;
  (*manifest.about)["loss_scaling"] = about;
  {
    log::RunLogWriter writer(folder / "run", manifest);
    policy::Policy policy = policy::make(text);
    for (std::size_t i = 0; i < magnitudes.size(); ++i) {
      log::StepScalars s;
      s.step = static_cast<std::int64_t>(i);
      std::vector<std::pair<double, double>> attempts;  // scale, magnitude
      policy::Decision decision;
      do {
        const double scale = policy::scale_of(policy);
        // A retry sees the next batch.
        const double seen = magnitudes[(i + attempts.size()) % magnitudes.size()];
        const bool overflow = !(seen * scale < 65520);
        const double recorded = overflow ? kInf : seen;
        attempts.emplace_back(scale, recorded);
        decision = policy::advance(policy, {.nonfinite = overflow, .max_abs = recorded});
      } while (decision.action == policy::Action::retry);
      s.loss_scale = attempts.back().first;
      s.max_abs_weight_grad = attempts.back().second;
      s.found_inf = decision.action == policy::Action::skip;
      for (std::size_t a = 0; attempts.size() > 1 && a < attempts.size(); ++a) {
        const std::string end = "/attempt-" + std::to_string(a);
        s.more["loss_scale" + end] = attempts[a].first;
        s.more["max_abs/weight_grad" + end] = attempts[a].second;
      }
      writer.write(s);
    }
    log::TensorRecord record = record_of("weight_grad/a.weight", 0, {0x1p-14f});
    record.computed_dtype = Dtype::f16;
    writer.write(record);
  }
  return analyzers::series_in(folder / "run");
}

TEST_CASE("The replay of the policy that drove a run is the run") {
  const std::vector<double> magnitudes = magnitudes_of(600);
  for (const policy::Policy& known : policy::all()) {
    const policy::Info& info = policy::info_of(known);
    if (info.needs != policy::Needs::nonfinite && info.needs != policy::Needs::magnitude) continue;
    nlohmann::json about = {{"policy", info.name}};
    std::string text(info.name);
    if (!info.initial.empty()) {
      about[std::string(info.initial)] = 65536.0;
      text += ",initial_scale=65536";
    }
    if (!info.interval.empty()) {
      about[std::string(info.interval)] = 7;
      text += ",growth_interval=7";
    }
    INFO(text);
    replay::StepSeries series;
    series = driven(text, about, magnitudes);
    const auto policy = replay::recorded_policy(series.manifest);
    REQUIRE(policy);
    CHECK(policy::text_of(*policy) == policy::text_of(policy::make(text)));
    const auto [difference, compared] =
        replay::compare_with_run(replay::replay(*policy, series), series);
    CHECK(compared == 600);
    if (difference) {
      FAIL("step " << difference->step << ": " << difference->replayed_scale << " for "
                   << difference->recorded_scale);
    }
    const auto run = replay::recorded_trace(series);
    REQUIRE(run);
    CHECK(run->skipped == replay::replay(*policy, series).skipped);
    CHECK(run->attempts == replay::replay(*policy, series).attempts);
  }
}

TEST_CASE("A replay that differs from the run is found") {
  const std::vector<double> magnitudes = magnitudes_of(300, 0);
  const replay::StepSeries series = driven("torch,init_scale=65536,growth_interval=9",
                                           {{"policy", "torch"}, {"scale", 65536.0}}, magnitudes);
  const auto policy = replay::recorded_policy(series.manifest);  // does not say 9
  REQUIRE(policy);
  const auto [difference, compared] =
      replay::compare_with_run(replay::replay(*policy, series), series);
  REQUIRE(difference);
  CHECK(difference->recorded_scale == 2 * difference->replayed_scale);
}

TEST_CASE("What a recorder says of a GradScaler is a policy") {
  replay::StepSeries series;
  CHECK(!replay::recorded_policy(series.manifest));
  series.manifest.emplace();
  (*series.manifest->about)["loss_scaling"] = {{"policy", "torch"},      {"class", "GradScaler"},
                                               {"scale", 1024.0},        {"growth_factor", 4.0},
                                               {"backoff_factor", 0.25}, {"growth_interval", 100}};
  CHECK(policy::text_of(*replay::recorded_policy(series.manifest)) ==
        "torch,init_scale=1024,growth_factor=4,backoff_factor=0.25,growth_interval=100");
  (*series.manifest->about)["loss_scaling"] = {{"policy", "none"}};
  CHECK(!replay::recorded_policy(series.manifest));
  (*series.manifest->about)["loss_scaling"] = {{"policy", "static"}, {"scale", 256.0}};
  CHECK(policy::scale_of(*replay::recorded_policy(series.manifest)) == 256);
}

TEST_CASE("A million steps of every policy take seconds") {
  const replay::StepSeries series = series_of(magnitudes_of(1'000'000, 1e-5));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<replay::Trace> traces = replay::replay(policy::all(), series);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  for (const replay::Trace& trace : traces) {
    const bool ended = trace.error || !trace.unavailable.empty();
    CHECK((ended || trace.length == 1'000'000));
  }
  CHECK(took.count() < 30);  // under a second on two idle cores
}

}  // namespace
}  // namespace halfscope::analyzers::test_replay
