// SPDX-License-Identifier: Apache-2.0
// A run that is known by its scale and skipped steps alone, as a series.
#include "analyzers/replay/step_series.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"

#include "analyzers/replay/replay.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_scale_series {
namespace {

underflow::Analysis told(std::int64_t first, std::int64_t last, std::int64_t every, double scale) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].name = "log";
  analysis.logs[0].kinds = {{"console log", {frames::Gap::tensors}}};
  for (std::int64_t step = first; step <= last; step += every) {
    log::StepScalars scalars;
    scalars.step = step;
    scalars.loss_scale = scale;
    scalars.loss = 1;
    scalars.found_inf = every == 1 ? std::optional(false) : std::nullopt;
    analysis.logs[0].scalars.push_back(scalars);
  }
  return analysis;
}

std::optional<replay::StepSeries> series_of(const underflow::Analysis& analysis) {
  const auto facts = findings_of(underflow::Analysis(analysis)).timelines;
  REQUIRE(facts.size() == 1);
  return replay::scale_series(analysis.logs[0], facts[0]);
}

/// (skipped, unknown) of a static scale over the series.
std::pair<std::size_t, std::size_t> replayed(const replay::StepSeries& series, const char* policy) {
  const auto trace = replay::replay(policy::make(policy), series);
  return {trace.skipped.size(), trace.unknown.size()};
}

TEST_CASE("an applied step is clean at its scale and below, a skipped one overflows above") {
  underflow::Analysis analysis = told(1, 20, 1, 1024);
  analysis.logs[0].scalars[4].found_inf = true;
  const auto series = series_of(analysis);
  REQUIRE(series);
  CHECK(series->steps.size() == 20);
  CHECK(replayed(*series, "static,scale=1024") == std::pair<std::size_t, std::size_t>(1, 0));
  CHECK(replayed(*series, "static,scale=512") == std::pair<std::size_t, std::size_t>(0, 1));
  CHECK(replayed(*series, "static,scale=2048") == std::pair<std::size_t, std::size_t>(1, 19));
}

TEST_CASE("of steps of which some were skipped the first ones count, at the scales told") {
  underflow::Analysis analysis = told(10, 40, 10, 1024);
  analysis.logs[0].kinds[0].counted_from = 1;
  analysis.logs[0].scalars[2].loss_scale = 256;
  analysis.logs[0].scalars[3].loss_scale = 256;
  analysis.logs[0].skips = {{21, 30, 2, 1024.0, 256.0, {1024, 512, 512, 256}}};
  const auto series = series_of(analysis);
  REQUIRE(series);
  CHECK(series->recorded_skip[20] == true);
  CHECK(series->recorded_skip[21] == true);
  CHECK(series->recorded_skip[22] == false);
  CHECK(series->recorded_scale[21] == 512);
  CHECK(series->seen[21].overflow_from == 512);
  CHECK(series->seen[25].clean_to == 256);
}

TEST_CASE("a loss that is NaN is skipped at every scale, and without steps there is no series") {
  underflow::Analysis analysis = told(1, 5, 1, 16);
  analysis.logs[0].scalars[2].loss = NAN;
  analysis.logs[0].scalars[2].found_inf = true;
  CHECK(replayed(*series_of(analysis), "static,scale=1").first == 1);
  analysis.logs[0].kinds[0].gaps.push_back(frames::Gap::steps);
  CHECK_FALSE(series_of(analysis));
}

}  // namespace
}  // namespace halfscope::analyzers::test_scale_series
