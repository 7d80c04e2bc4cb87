// SPDX-License-Identifier: Apache-2.0
// Where a fall of the loss scale begins, and when it is over.
#include "analyzers/scale_history/timeline_facts.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/study.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_falls {
namespace {

using scale_history::RunState;
using scale_history::TimelineFacts;

log::StepScalars line_of(std::int64_t step, std::optional<double> scale = std::nullopt) {
  log::StepScalars scalars;
  scalars.step = step;
  scalars.learning_rate = 0.1;
  scalars.loss_scale = scale;
  return scalars;
}

TimelineFacts facts_of(std::vector<log::StepScalars> scalars,
                       std::vector<frames::SkippedSteps> skips,
                       frames::Gap gap = frames::Gap::tensors,
                       std::vector<frames::StepPeak> peaks = {}) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].kinds = {{"console log", {gap}}};
  analysis.logs[0].scalars.assign(scalars.begin(), scalars.end());
  analysis.logs[0].skips = std::move(skips);
  analysis.logs[0].peaks = std::move(peaks);
  return findings_of(std::move(analysis)).timelines.at(0);
}

/// A burst of 15 skipped steps after 1000, told every ten; then the scale doubles `growths` times.
TimelineFacts burst(int growths) {
  std::vector<log::StepScalars> lines;
  for (std::int64_t step = 10; step <= 1000; step += 10) lines.push_back(line_of(step, 0x1p17));
  double scale = 0x1p2;
  for (std::int64_t step = 1020; step <= 1120; step += 10) lines.push_back(line_of(step, scale));
  for (int i = 0; i < growths; ++i) lines.push_back(line_of(1220 + 100 * i, scale *= 2));
  return facts_of(lines, {{1001, 1020, Interval(15), 0x1p17, 0x1p2}});
}

TEST_CASE("a fall is over where the scale grew twice after it") {
  REQUIRE(burst(1).collapse() != nullptr);  // one growth is a probe
  CHECK(burst(1).collapse()->after == 1001);
  CHECK(burst(1).state == RunState::collapsed);
  CHECK(burst(2).collapse() == nullptr);
}

/// Only what skipped steps leave is told, as DeepSpeed does.
TimelineFacts untold_growth(std::int64_t last) {
  std::vector<log::StepScalars> lines;
  for (std::int64_t step = 10; step <= last; step += 10) lines.push_back(line_of(step));
  return facts_of(lines, {{301, 310, Interval(1), 0x1p17, 0x1p16},
                          {401, 410, Interval(1), 0x1p17, 0x1p16},
                          {901, 920, Interval(15), 0x1p17, 0x1p2}});
}

TEST_CASE("clean steps for longer than two windows end a fall where growth is not told") {
  CHECK(untold_growth(1100).collapse() != nullptr);
  CHECK(untold_growth(1200).collapse() == nullptr);  // the window is 108 at the most
}

TEST_CASE("a probe long before a fall is not its beginning") {
  std::vector<log::StepScalars> lines;
  for (std::int64_t step = 10; step <= 2000; step += 10) {
    lines.push_back(line_of(step, step <= 1000 ? 0x1p17 : step < 2000 ? 0x1p16 : 0x1p6));
  }
  const TimelineFacts facts = facts_of(lines, {{1001, 1010, Interval(1), 0x1p17, 0x1p16},
                                               {1991, 2000, Interval(10), 0x1p16, 0x1p6}});
  REQUIRE(facts.falls.size() == 1);
  CHECK(facts.falls[0].after == 1991);
  CHECK(facts.falls[0].from == 0x1p16);
}

/// A scale of 2^12 that begins anew at 2^23 by step 1001 and comes down to `end`.
TimelineFacts begun_anew(double end) {
  std::vector<log::StepScalars> lines;
  for (std::int64_t step = 1; step <= 1000; ++step) lines.push_back(line_of(step, 0x1p12));
  double scale = 0x1p23;
  for (std::int64_t step = 1001; step <= 1100; ++step) {
    lines.push_back(line_of(step, scale));
    scale = std::max(end, scale / 2);
  }
  return facts_of(lines, {});
}

TEST_CASE("a fall from where the scale began anew counts from what it was before") {
  const TimelineFacts back = begun_anew(0x1p12);
  REQUIRE(back.jump);
  REQUIRE(back.falls.size() == 1);
  CHECK(back.falls[0].before_reset == 0x1p12);
  CHECK(back.collapse() == nullptr);
  CHECK(begun_anew(0x1p3).collapse() == nullptr);  // by less than a thousandth
  CHECK(begun_anew(0x1p2).collapse() != nullptr);
}

TEST_CASE("steps skipped after the last line have no numbers") {
  std::vector<log::StepScalars> lines;
  for (std::int64_t step = 100; step <= 900; step += 100) lines.push_back(line_of(step));
  std::vector<double> scales;
  for (int log2 = 14; log2 > 0; --log2) scales.push_back(std::ldexp(1.0, log2));
  const TimelineFacts open =
      facts_of(lines, {{901, std::nullopt, Interval(16), 0x1p15, 1, scales}});
  REQUIRE(open.in_vain);
  CHECK(open.in_vain->first == 901);
  CHECK_FALSE(open.in_vain->last);
  CHECK(open.state == RunState::broken);
}

TEST_CASE("a fall whose scales have no steps has a driver all the same") {
  const TimelineFacts facts =
      facts_of({line_of(10)}, {{1, 10, Interval(3), std::nullopt, std::nullopt, {1024, 64, 16}}},
               frames::Gap::tensors, {{log::Role::weight_grad, 5, 0.5, std::nullopt, "layer"}});
  REQUIRE(facts.falls.size() == 1);
  REQUIRE(facts.falls[0].driver);
  CHECK(facts.falls[0].driver->tensor == "layer");
  CHECK(facts.falls[0].driver->scale == 1024);
}

TEST_CASE("of entries without steps only the first can be the start") {
  std::vector<log::StepScalars> lines;
  for (std::int64_t entry = 0; entry < 21; ++entry) {
    lines.push_back(line_of(entry, std::ldexp(1.0, entry < 7 ? 16 : 22 - static_cast<int>(entry))));
    lines.back().learning_rate.reset();
    lines.back().found_inf = true;
  }
  const TimelineFacts facts = facts_of(lines, {}, frames::Gap::steps);
  CHECK_FALSE(facts.slow_start);
  CHECK(facts.state == RunState::collapsed);
}

}  // namespace
}  // namespace halfscope::analyzers::test_falls
