// SPDX-License-Identifier: Apache-2.0
// Where a loss scale settled, after how many steps it grows, and where it began anew.
#include "analyzers/scale_history/scale_rules.hpp"

#include "analyzers/study.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_scale_settings {
namespace {

using scale_history::RunState;
using scale_history::TimelineFacts;

struct Step {
  double scale;
  bool skipped = false;
  std::optional<double> learning_rate = 0.1;
};

/// Of a log that tells each step, from 1 on.
TimelineFacts facts_of(const std::vector<Step>& steps) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].name = "log";
  analysis.logs[0].kinds = {{"console log", {frames::Gap::tensors}}};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    log::StepScalars scalars;
    scalars.step = static_cast<std::int64_t>(i) + 1;
    scalars.loss_scale = steps[i].scale;
    scalars.found_inf = steps[i].skipped;
    scalars.learning_rate = steps[i].learning_rate;
    analysis.logs[0].scalars.push_back(scalars);
  }
  const auto facts = findings_of(std::move(analysis)).timelines;
  REQUIRE(facts.size() == 1);
  return facts[0];
}

/// Doubles after `window` clean steps, and is halved at once.
std::vector<Step> sawtooth(std::size_t periods, std::size_t window, double low) {
  std::vector<Step> steps;
  for (std::size_t i = 0; i < periods; ++i) {
    steps.insert(steps.end(), window, Step{low});
    steps.push_back({2 * low, true});
  }
  return steps;
}

TEST_CASE("a scale settles where it was for most steps, and shows its window") {
  const TimelineFacts facts = facts_of(sawtooth(5, 100, 0x1p15));
  REQUIRE(facts.settings);
  CHECK(facts.settings->init == 0x1p15);
  CHECK(facts.settings->window == Interval(100));
  CHECK(facts.settings->longer == 1000);
  CHECK(facts.state == RunState::normal);
  CHECK(facts_of(sawtooth(3, 600, 8)).settings->longer == std::nullopt);  // costs little
}

TEST_CASE("a scale that does not move is nothing to set, unless steps are skipped") {
  CHECK_FALSE(facts_of(std::vector<Step>(50, Step{1024})).settings);
}

TEST_CASE("skipped steps that left the scale make no shorter window") {
  std::vector<Step> steps = sawtooth(3, 100, 256);
  steps.insert(steps.end(), 30, Step{256});
  steps.push_back({256, true});  // hysteresis
  steps.insert(steps.end(), 100, Step{256});
  steps.insert(steps.end(), 2, Step{512});
  CHECK(facts_of(steps).settings->window == Interval(100));
}

/// Ten steps each, as a counter tells them.
underflow::Analysis counted(std::initializer_list<frames::SkippedSteps> skips) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].kinds = {{"console log", {frames::Gap::tensors}}};
  for (std::int64_t step = 10; step <= 2000; step += 10) {
    log::StepScalars scalars;
    scalars.step = step;
    scalars.learning_rate = 0.1;
    analysis.logs[0].scalars.push_back(scalars);
  }
  analysis.logs[0].skips = skips;
  return analysis;
}

TimelineFacts facts_of_counted(std::initializer_list<frames::SkippedSteps> skips) {
  return findings_of(counted(skips)).timelines.at(0);
}

TEST_CASE("a skipped step that left the scale shows hysteresis, and no window") {
  const auto settings = facts_of_counted({{1001, 1010, Interval(1), 131072, 131072},
                                          {1011, 1020, Interval(1), 131072, 65536}})
                            .settings;
  REQUIRE(settings);
  CHECK_FALSE(settings->window);
  CHECK(settings->hysteresis == 2);
}

TEST_CASE("hysteresis is what lines tell, where they do") {
  underflow::Analysis analysis = counted(
      {{1001, 1010, Interval(1), 131072, 131072}, {1011, 1020, Interval(1), 131072, 65536}});
  analysis.logs[0].kinds[0].hysteresis = 3;
  CHECK(findings_of(std::move(analysis)).timelines.at(0).settings->hysteresis == 3);
}

TEST_CASE("growth is between a scale that a skipped step left and its double") {
  const auto settings = facts_of_counted({{11, 20, Interval(1), 131072, 65536},
                                          {121, 130, Interval(1), 131072, 65536},
                                          {131, 140, Interval(1), 1048576, 524288}})
                            .settings;
  REQUIRE(settings);
  CHECK(settings->window == Interval(1, 118));  // not 18: there the scale began anew
  CHECK(settings->hysteresis == 1);
}

TEST_CASE("at its floor a scale shows no window") {
  std::vector<Step> steps(50, Step{4});
  for (const double scale : {4, 2, 1, 1, 1, 1}) steps.push_back({scale, true});
  steps.insert(steps.end(), 5, Step{1});
  const auto settings = facts_of(steps).settings;
  REQUIRE(settings);
  CHECK_FALSE(settings->window);
  CHECK(settings->hysteresis == 1);
}

TEST_CASE("a scale settles only where it was tried and held") {
  std::vector<Step> falling;
  for (int log2 = 32; log2 > 20; --log2) falling.push_back({std::ldexp(1.0, log2), true});
  CHECK_FALSE(facts_of(falling).settings);
  std::vector<Step> growing;
  for (int log2 = 7; log2 < 14; ++log2)
    growing.insert(growing.end(), 30, Step{std::ldexp(1.0, log2)});
  CHECK_FALSE(facts_of(growing).settings);
  growing.insert(growing.end(), 200, Step{0x1p13});  // its greatest
  REQUIRE(facts_of(growing).settings);
  CHECK(facts_of(growing).settings->init == 0x1p13);
  // The scale is told of one skipped step alone, and it is unknown for how long.
  const auto once = facts_of_counted({{1001, 1010, Interval(1), 131072, 65536}}).settings;
  REQUIRE(once);
  CHECK(once->init == 65536);
}

TEST_CASE("a scale that rises further than growth takes it began anew") {
  std::vector<Step> steps = sawtooth(3, 100, 0x1p15);
  for (int log2 = 24; log2 > 15; --log2) steps.push_back({std::ldexp(1.0, log2), true});
  steps.insert(steps.end(), 60, Step{0x1p15});
  const TimelineFacts facts = facts_of(steps);
  REQUIRE(facts.jump);
  CHECK(facts.jump->from == 0x1p16);
  CHECK(facts.jump->to == 0x1p24);
  CHECK(facts.jump->by == 304);
  CHECK(facts.jump->lost == 8);  // then it is back at 2^16
  CHECK_FALSE(facts.jump->to_start);
  CHECK_FALSE(facts_of(sawtooth(5, 20, 64)).jump);
}

TEST_CASE("every restart of the scaler counts, and its lost steps only where skips are told") {
  std::vector<Step> steps = sawtooth(3, 100, 0x1p15);
  for (int i = 0; i < 2; ++i) {
    for (int log2 = 24; log2 > 15; --log2) steps.push_back({std::ldexp(1.0, log2), true});
    steps.insert(steps.end(), 60, Step{0x1p15});
  }
  const TimelineFacts facts = facts_of(steps);
  REQUIRE(facts.jump);
  CHECK(facts.jump->times == 2);
  CHECK(facts.jump->by == 304);
  REQUIRE(facts.jump->lost);
  CHECK(*facts.jump->lost == Interval(8 + 9));  // back at 2^16, and at 2^15
  underflow::Analysis analysis = counted({});
  for (log::StepScalars& scalars : analysis.logs[0].scalars) {
    scalars.loss_scale = scalars.step < 1000 ? 0x1p15 : 0x1p24;
  }
  analysis.logs[0].scalars.back().loss_scale = 0x1p15;
  const auto untold = findings_of(std::move(analysis)).timelines.at(0);
  REQUIRE(untold.jump);
  CHECK_FALSE(untold.jump->lost);
}

TEST_CASE("of steps skipped around a restart of the scaler those after it are lost to it") {
  TimelineFacts facts;
  facts.skips_told = true;
  facts.changes = {{.after = 100, .by = 101, .from = 0x1p15, .to = 0x1p24},
                   {.after = 110, .by = 111, .from = 0x1p24, .to = 0x1p15}};
  facts.skips = {{.first = 95, .last = 104, .count = 4},   // 101 to 104 are after it
                 {.first = 105, .last = 108, .count = 3},  // all are
                 {.first = 109, .last = 118, .count = 8},  // 3 of 10 are, so one at the least
                 {.first = 119, .last = 128, .count = 5}};
  scale_history::set_jump(facts);
  REQUIRE(facts.jump);
  CHECK(facts.jump->lost == Interval(4, 10));
}

TEST_CASE("a schedule that goes on at skipped steps is ahead") {
  std::vector<Step> steps;
  for (int i = 0; i < 40; ++i) steps.push_back({1024, i % 10 == 5, 0.1 + 0.001 * i});
  CHECK(facts_of(steps).schedule_ahead == 4);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (steps[i - 1].skipped) steps[i].learning_rate = steps[i - 1].learning_rate;
  }
  CHECK(facts_of(steps).schedule_ahead == 0);
  CHECK(facts_of(steps).schedule_known == 4);
}

TEST_CASE("where the scale alone is told, a fall from the first one is a slow start") {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].kinds = {{"console log", {frames::Gap::tensors}}};
  for (const auto& [step, scale] :
       {std::pair(10, 0x1p24), std::pair(20, 0x1p16), std::pair(30, 0x1p16)}) {
    log::StepScalars scalars;
    scalars.step = step;
    scalars.loss_scale = scale;
    scalars.loss = 1;
    analysis.logs[0].scalars.push_back(scalars);
  }
  const auto facts = findings_of(std::move(analysis)).timelines.at(0);
  CHECK(facts.state == RunState::slow_start);
  CHECK(facts.halvings.low == 8);
  CHECK(facts.halvings.high == 10);
}

}  // namespace
}  // namespace halfscope::analyzers::test_scale_settings
