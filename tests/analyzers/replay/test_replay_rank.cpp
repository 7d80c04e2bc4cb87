// SPDX-License-Identifier: Apache-2.0
// How traces end and how they are ranked.
#include <cmath>
#include <utility>
#include <vector>

#include "analyzers/replay/replay.hpp"
#include "analyzers/replay/replay_loop.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_replay_rank {
namespace {

replay::StepSeries series_of(const std::vector<double>& magnitudes) {
  replay::StepSeries series;
  series.from_magnitudes = true;
  for (const double m : magnitudes) {
    series.steps.push_back(static_cast<std::int64_t>(series.steps.size()));
    series.seen.push_back({m, 0});
  }
  return series;
}

TEST_CASE("A floor is where steps are skipped for ever, not where overflow is applied") {
  const replay::StepSeries large = series_of(std::vector<double>(20, 1000.0));
  for (const char* text : {"chainer,scale=128", "apex,loss_scale=128", "fastai1,dynamic=false",
                           "megatron,initial_scale=65536,hysteresis=100"}) {
    CAPTURE(text);
    CHECK(replay::replay(policy::make(text), large).outcome == replay::TraceOutcome::ran);
  }
  CHECK(
      replay::replay(policy::make("tf1,initial_scale=64"), series_of(std::vector<double>(20, 1e6)))
          .outcome == replay::TraceOutcome::floor);
}

TEST_CASE("Rank: the smallest share lost, skipped steps whole, errors and unavailable last") {
  std::vector<replay::Trace> traces(6);
  for (replay::Trace& trace : traces) trace.length = 10;
  traces[0].unavailable = "needs";
  traces[1].error = replay::TraceError{"ends", 3};
  traces[2].skipped = {1, 2};
  traces[3].skipped = {1};
  traces[3].applied_nonfinite = {2};
  traces[3].mean_flushed = {0.0, 0.1};
  traces[4].skipped = {5};
  traces[5].mean_flushed = {0.1, 0.5};  // skips nothing, but flushes more than a step's share
  CHECK(traces[2].lost_share() == 0.2);
  CHECK(traces[3].lost_share() == 0.9 + (1 - 0.9) * 0.1);  // all from the spoiled step on
  CHECK(traces[5].lost_share() == 0.5);
  // What 2 and 4 flush nobody knows.
  CHECK(replay::ranked(traces) == std::vector<std::size_t>{5, 3, 4, 2, 1, 0});
  traces[2].mean_flushed = traces[4].mean_flushed = {0.0, 0.0};
  CHECK(replay::ranked(traces) == std::vector<std::size_t>{4, 2, 5, 3, 1, 0});
  traces[4].unknown = {6, 7};
  CHECK(replay::ranked(traces) == std::vector<std::size_t>{2, 4, 5, 3, 1, 0});
  traces[4].unknown.clear();
  traces[2].skipped = {5};
  traces[2].final_scale = 2;  // of equal losses the larger scale
  CHECK(replay::ranked(traces) == std::vector<std::size_t>{2, 4, 5, 3, 1, 0});
}

TEST_CASE("Rank: of shares that look the same the smaller that is surely lost") {
  std::vector<replay::Trace> traces(3);
  for (replay::Trace& trace : traces) trace.length = 1000;
  traces[0].skipped = {1, 2, 3};
  traces[0].unknown = {4, 5};
  traces[1].skipped = {1};
  traces[1].unknown = {2, 3, 4, 5};
  traces[2].skipped = {1, 2, 3, 4, 5};
  traces[0].mean_flushed = traces[2].mean_flushed = {0.0, 0.57};
  traces[1].mean_flushed = {0.0, 0.57001};
  CHECK(traces[1].lost().first == 0.001);
  CHECK(traces[0].lost_share() < traces[1].lost_share());
  CHECK(replay::ranked(traces) == std::vector<std::size_t>{1, 0, 2});
}

TEST_CASE("All steps from an error on are lost") {
  std::vector<double> magnitudes(10, 1e6);
  magnitudes.resize(100, 0.5);
  const replay::StepSeries series = series_of(magnitudes);
  const replay::Trace dies = replay::replay(policy::make("deepspeed,init_scale=4"), series);
  REQUIRE(dies.error);
  CHECK(dies.error->step == 2);
  CHECK(dies.untaken == 97);
  CHECK(dies.lost() == std::pair(1.0, 1.0));
  const replay::Trace lives = replay::replay(policy::make("tf1,initial_scale=4"), series);
  CHECK(lives.lost_share() == 0.1);
}

TEST_CASE("All steps from an infinity in the weights on are lost") {
  std::vector<double> magnitudes(10, 0.5);
  magnitudes[5] = 1e6;
  const replay::Trace spoiled = replay::replay(policy::make("mxnet-static"), series_of(magnitudes));
  CHECK(spoiled.applied_nonfinite.size() == 1);
  CHECK(spoiled.model_nan_applied == 0);
  CHECK(spoiled.lost() == std::pair(0.5, 0.5));
}

TEST_CASE("A step whose largest gradient is flushed is lost, whatever is not known of others") {
  const double scale = 0x1p-10;
  const replay::Trace trace =
      replay::replay(policy::make("static,scale=2^-10"),
                     series_of({replay::kVanishes / scale, std::nextafter(0x1p-15, 1), 0, 1}));
  CHECK(trace.all_flushed == std::vector<std::int64_t>{0});  // a tie goes to zero
  CHECK(trace.lost() == std::pair(0.25, 0.25));
  replay::StepSeries part = series_of({0x1p-30, 1});
  part.seen[0].partial = true;
  CHECK(replay::replay(policy::make("static,scale=2^-10"), part).all_flushed.empty());
}

TEST_CASE("A floor is where steps overflow at the end, not long before") {
  std::vector<double> magnitudes(20, 1e6);
  magnitudes.resize(400, 1e-3);
  CHECK(replay::replay(policy::make("tf1,initial_scale=4"), series_of(magnitudes)).outcome ==
        replay::TraceOutcome::ran);
  magnitudes[395] = 1e6;
  CHECK(replay::replay(policy::make("tf1,initial_scale=4"), series_of(magnitudes)).outcome ==
        replay::TraceOutcome::floor);
}

TEST_CASE("What is flushed at a step that is tried again is told by the last attempt's scale") {
  replay::StepSeries series = series_of({0.5, 0.5});
  series.flushed.push_back({0, 100, 16, {40, 0}});  // 40 % up to 2^16, nothing above
  const replay::Trace trace = replay::replay(policy::make("nnabla,scale=2^18"), series);
  CHECK(trace.attempts.at(0) == 3);
  CHECK(trace.mean_flushed == std::pair(0.4, 0.4));
}

TEST_CASE("Steps that are assumed are like the one before, in what the run did too") {
  replay::StepSeries series = series_of({0.5, 0.5, 1e6});
  series.steps = {0, 10, 20};
  series.recorded_scale = {65536.0, 32768.0, 32768.0};
  series.recorded_skip = {false, false, true};
  replay::close_gaps(series, true);
  const auto run = replay::recorded_trace(series);
  REQUIRE(run);
  CHECK(run->unknown.empty());
  CHECK(run->skipped == std::vector<std::int64_t>{20});
  CHECK(run->scale == replay::ScaleRuns{{0, 65536}, {10, 32768}});
  CHECK(replay::compare_with_run(*run, series).second == 3);  // the others the run does not tell of
}

TEST_CASE("A run that does not say whether it skipped an overflow lost it, in one way or another") {
  replay::StepSeries series = series_of({0.5, 1e6, 0.5});
  series.recorded_scale = {1024.0, 1024.0, 1024.0};
  const auto run = replay::recorded_trace(series);
  REQUIRE(run);
  CHECK(run->overflow == std::vector<std::int64_t>{1});
  CHECK(run->unknown == std::vector<std::int64_t>{1});
  CHECK(run->lost().second > 0.3);
}

}  // namespace
}  // namespace halfscope::analyzers::test_replay_rank
