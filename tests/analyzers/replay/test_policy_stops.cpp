// SPDX-License-Identifier: Apache-2.0
// What stops dynamic settings at the edges: of what a log tells, of the arithmetic, of a run that
// diverges.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "analyzers/policy_series.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_policy_stops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

replay::TunedPolicy tuned_from(const std::string& policy, const replay::StepSeries& series,
                               double target = 0.001) {
  const auto tuned = replay::tune(policy::make(policy), series, {.target_underflow = target});
  REQUIRE(tuned);
  return *tuned;
}

bool stopped(const replay::TunedPolicy& tuned, const char* by) {
  CAPTURE(tuned.text, tuned.stopped_by);
  return tuned.stopped_by.find(by) != std::string::npos;
}

TEST_CASE("A scale that is not recorded is not said to be larger") {
  replay::StepSeries series = series_of({1e-3, 1e-3, 1e-3, kInf, kInf});
  series.seen[3].overflow_from = kInf;  // as where no scale is known
  series.seen[4].overflow_from = kInf;
  CHECK(tuned_from("torch", series).stopped_by ==
        "At 2 steps the run overflowed at a scale that is not recorded; it is unknown how small a "
        "scale has to be to hold them.");
  series.seen[4].overflow_from = 2;
  const replay::TunedPolicy both = tuned_from("torch", series);
  CHECK(stopped(both,
                "At 1 step the run overflowed at a scale that is not recorded; it is unknown how "
                "small a scale has to be to hold it."));
  CHECK(stopped(both,
                "At 1 step the run overflowed at a larger scale; the log does not show how small a "
                "scale has to be to hold it."));
}

TEST_CASE("Settings start as low as gradients of binary32 ask for") {
  const replay::StepSeries series = series_of(std::vector<double>(200, 0x1p127));
  for (const char* const name : {"torch", "apex", "deepspeed-fused", "megatron"}) {
    CAPTURE(name);
    const replay::TunedPolicy tuned = tuned_from(name, series);
    CHECK((tuned.trace.skipped.empty() || policy::limits_of(tuned.trace.policy).whole_numbers));
  }
  CHECK(tuned_from("torch", series).trace.scale_at(0) == 0x1p-112);
}

TEST_CASE("Below the arithmetic of a framework no scale is tried, and it is said") {
  const replay::StepSeries series = series_of(std::vector<double>(50, 1.7e308));
  const replay::TunedPolicy torch = tuned_from("torch", series);
  CHECK(torch.trace.scale_at(0) == 0x1p-126);
  CHECK(stopped(torch,
                "need a scale of 2^-1008 or less, but its framework keeps the scale in "
                "binary32, whose smallest normal number is 2^-126."));
  const replay::TunedPolicy apex = tuned_from("apex", series);  // binary64
  CHECK(apex.trace.skipped.empty());
  CHECK(apex.stopped_by.empty());
  CHECK(!tuned_from("megatron", series).trace.skipped.empty());  // its floor is lowered, too
}

TEST_CASE("Settings that a policy has and that keep the target are told of") {
  // 30 steps at 0x1p-5: 2^20 holds them, 2^21 overflows. The table's step needs 2^31.
  replay::StepSeries series = series_of(std::vector<double>(30, 0x1p-5));
  series.flushed = {{0, 100, 30, {50, 0}}};
  const replay::TunedPolicy tuned =
      tuned_from("apex-legacy", series);  // starts at 2^32, and comes down
  CHECK(!tuned.within_target);
  REQUIRE(tuned.own_within_target);
  CHECK(tuned.own_within_target->skipped.size() == 12);
  CHECK(tuned.own_within_target->mean_flushed->second == 0);
  CHECK(!tuned_from("torch", series).own_within_target);  // flushes as much as what is tried
}

/// Gradients grow without end; then the model has NaN.
replay::StepSeries diverging(std::size_t nan_steps) {
  std::vector<double> magnitudes = {0.03, 0.4, 1500, 8e5, 1.9e18};
  magnitudes.resize(5 + nan_steps, NAN);
  replay::StepSeries series = series_of(magnitudes);
  series.flushed = {{0, 100, -30, std::vector<Interval>(24, 100)}};
  for (int k = 0; k < 60; ++k) series.flushed[0].flushed.emplace_back(0);
  return series;
}

replay::PolicyStudy study_of(replay::StepSeries series) {
  replay::PolicyOptions options;
  options.policies = {policy::make("torch")};
  return replay::study_magnitudes(std::move(series), options);
}

TEST_CASE("What a run that diverges ends with asks for no static scale") {
  const replay::PolicyStudy study = study_of(diverging(55));
  CHECK(!study.fixed);
  CHECK(study.advised.refused == replay::NoStatic::diverges);
  CHECK(study.advised.log2 == -46);
  // Nor for a dynamic one that starts so small.
  REQUIRE(study.tuned);
  CHECK(study.tuned->trace.scale_at(0) > 0x1p-10);
  CHECK(study.tuned->trace.skipped.size() < study.traces[0].skipped.size());
  CHECK(study.tuned->trace.lost_share() < study.traces[0].lost_share());
  CHECK(!study_of(diverging(0)).fixed);  // without NaN at the end
}

TEST_CASE("A scale below 1 is recommended where training goes on") {
  CHECK(study_of(series_of({0.5, 2e5, 0.5})).fixed->scale_at(0) == 0x1p-3);
  const replay::PolicyStudy nan_between = study_of(series_of({0.5, 2e5, NAN, 0.5}));
  CHECK(nan_between.fixed->scale_at(0) == 0x1p-3);
  const replay::PolicyStudy nan_at_last = study_of(series_of({0.5, 2e5, 0.5, NAN}));
  CHECK(nan_at_last.advised.refused == replay::NoStatic::diverges);
  CHECK(nan_at_last.advised.log2 == -3);
  CHECK(study_of(series_of({0.5, 0.5, NAN})).fixed->scale_at(0) == 0x1p15);
}

}  // namespace
}  // namespace halfscope::analyzers::test_policy_stops
