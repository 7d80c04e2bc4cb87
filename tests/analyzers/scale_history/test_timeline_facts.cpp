// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/timeline_facts.hpp"

#include <limits>

#include "analyzers/study.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::test_timeline_facts {
namespace {

underflow::Analysis with_scales(const std::vector<std::pair<std::int64_t, double>>& scales) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].name = "log";
  analysis.logs[0].kinds = {{"console log", {frames::Gap::tensors}}};
  for (const auto& [step, scale] : scales) {
    log::StepScalars scalars;
    scalars.step = step;
    scalars.loss_scale = scale;
    analysis.logs[0].scalars.push_back(scalars);
  }
  return analysis;
}

TEST_CASE("the falls of a scale, and what drove them") {
  // An everyday probe, then a collapse.
  underflow::Analysis analysis = with_scales(
      {{1, 64}, {2, 128}, {3, 64}, {4, 128}, {5, 64}, {6, 32}, {7, 16}, {8, 16}, {9, 32}});
  const auto add = [&](const char* tensor, std::int64_t step, double max_abs) {
    frames::StepPeak peak;
    peak.role = log::Role::weight_grad;
    peak.tensor = tensor;
    peak.step = step;
    peak.max_abs = max_abs;
    analysis.logs[0].peaks.push_back(peak);
  };
  SECTION("nothing recorded") {
    const auto facts = findings_of(underflow::Analysis(analysis)).timelines;
    REQUIRE(facts.size() == 1);
    CHECK(facts[0].changes.size() == 7);
    CHECK(facts[0].scale_least == 16);
    CHECK(facts[0].scale_last == 32);
    REQUIRE(facts[0].falls.size() == 1);
    CHECK(facts[0].falls[0].after == 4);
    CHECK(facts[0].falls[0].by == 7);
    CHECK(facts[0].falls[0].from == 128);
    CHECK(facts[0].falls[0].to == 16);
    CHECK(facts[0].falls[0].reductions == 3);
    CHECK_FALSE(facts[0].falls[0].driver);
    CHECK_FALSE(facts[0].magnitudes);
  }
  SECTION("the one closest to overflow at its step's scale, of the steps of the fall") {
    add("a", 4, 400);
    add("b", 5, 900);   // at half the scale
    add("c", 7, 5000);  // the scale is down by then
    const auto driver = findings_of(underflow::Analysis(analysis)).timelines[0].falls[0].driver;
    REQUIRE(driver);
    CHECK(driver->tensor == "b");
    CHECK(driver->step == 5);
    CHECK_FALSE(driver->before);
  }
  SECTION("the first that is not finite") {
    add("a", 4, 600);
    add("b", 5, std::numeric_limits<double>::infinity());
    add("c", 5, std::numeric_limits<double>::quiet_NaN());
    add("d", 6, std::numeric_limits<double>::quiet_NaN());
    const auto driver = findings_of(underflow::Analysis(analysis)).timelines[0].falls[0].driver;
    REQUIRE(driver);
    CHECK(driver->tensor == "b");
    CHECK(driver->also == 1);
  }
  SECTION("else of the step before") {
    add("a", 1, 600);
    add("b", 2, 20);
    const auto driver = findings_of(underflow::Analysis(analysis)).timelines[0].falls[0].driver;
    REQUIRE(driver);
    CHECK(driver->tensor == "b");
    CHECK(driver->before);
  }
  SECTION("a run log has its own commands") {
    analysis.logs[0].kinds.clear();
    CHECK(findings_of(underflow::Analysis(analysis)).timelines.empty());
  }
}

TEST_CASE("skipped steps between two lines are part of the way the scale goes") {
  underflow::Analysis analysis = with_scales({{11, 1024}});
  analysis.logs[0].skips.push_back(frames::SkippedSteps{12, 20, 3, 1024, 128});
  analysis.logs[0].skips.push_back(frames::SkippedSteps{21, std::nullopt, 2, 128, 32});
  const auto facts = findings_of(underflow::Analysis(analysis)).timelines;
  REQUIRE(facts.size() == 1);
  CHECK(facts[0].skipped_in_all == 5);
  CHECK(facts[0].scale_last == 32);
  REQUIRE(facts[0].falls.size() == 1);
  CHECK(facts[0].falls[0].from == 1024);
  CHECK(facts[0].falls[0].to == 32);
  CHECK(facts[0].falls[0].by == std::nullopt);
}

}  // namespace
}  // namespace halfscope::analyzers::test_timeline_facts
