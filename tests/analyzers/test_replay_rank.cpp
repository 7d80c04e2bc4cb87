// SPDX-License-Identifier: Apache-2.0
// How traces end and how they are ranked.
#include "analyzers/replay.hpp"
#include "catch.hpp"

namespace halfscope::analyzers {
namespace {

StepSeries series_of(const std::vector<double>& magnitudes) {
  StepSeries series;
  series.from_magnitudes = true;
  for (const double m : magnitudes) {
    series.steps.push_back(static_cast<std::int64_t>(series.steps.size()));
    series.seen.push_back({m, 0});
  }
  return series;
}

TEST_CASE("A floor is where steps are skipped for ever, not where overflow is applied") {
  const StepSeries large = series_of(std::vector<double>(20, 1000.0));
  for (const char* text : {"chainer,scale=128", "apex,loss_scale=128", "fastai1,dynamic=false",
                           "megatron,initial_scale=65536,hysteresis=100"}) {
    CAPTURE(text);
    CHECK(replay(policy::make(text), large).fate == Fate::ran);
  }
  CHECK(
      replay(policy::make("tf1,initial_scale=64"), series_of(std::vector<double>(20, 1e6))).fate ==
      Fate::floor);
}

TEST_CASE("Rank: the smallest share lost, skipped steps whole, errors and unavailable last") {
  std::vector<Trace> traces(6);
  for (Trace& trace : traces) trace.length = 10;
  traces[0].unavailable = "needs";
  traces[1].error = TraceError{"ends", 3};
  traces[2].skipped = {1, 2};
  traces[3].skipped = {1};
  traces[3].applied_nonfinite = {2};
  traces[3].mean_flushed = {0.0, 0.1};
  traces[4].skipped = {5};
  traces[5].mean_flushed = {0.1, 0.5};  // skips nothing, but flushes more than a step's share
  CHECK(traces[2].lost_share() == 0.2);
  CHECK(traces[3].lost_share() == 0.2 + 0.8 * 0.1);
  CHECK(traces[5].lost_share() == 0.5);
  // What 2 and 4 flush nobody knows.
  CHECK(ranked(traces) == std::vector<std::size_t>{3, 5, 4, 2, 1, 0});
  traces[2].mean_flushed = traces[4].mean_flushed = {0.0, 0.0};
  CHECK(ranked(traces) == std::vector<std::size_t>{4, 2, 3, 5, 1, 0});
  traces[4].unknown = {6, 7};
  CHECK(ranked(traces) == std::vector<std::size_t>{2, 3, 4, 5, 1, 0});
  traces[4].unknown.clear();
  traces[2].skipped = {5};
  traces[2].final_scale = 2;  // of equal losses the larger scale
  CHECK(ranked(traces) == std::vector<std::size_t>{2, 4, 3, 5, 1, 0});
}

}  // namespace
}  // namespace halfscope::analyzers
