// SPDX-License-Identifier: Apache-2.0
// What skipped steps without magnitudes say of a scale, by hand from the scales.
#include "analyzers/recommend/parts.hpp"

#include <limits>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"

namespace test_skip_limit {

using namespace halfscope;
using namespace halfscope::analyzers;

underflow::Analysis console(std::vector<frames::SkippedSteps> skips) {
  underflow::Analysis analysis;
  analysis.logs.resize(1);
  analysis.logs[0].name = "train.log";
  analysis.logs[0].kinds.push_back(frames::LogKind{"console log", {}});
  for (const frames::SkippedSteps& range : skips) analysis.logs[0].skips.push_back(range);
  return analysis;
}

log::StepScalars step_at(std::int64_t step, double scale, bool found_inf) {
  log::StepScalars scalars;
  scalars.step = step;
  scalars.loss_scale = scale;
  scalars.found_inf = found_inf;
  return scalars;
}

std::optional<recommend::Limit> skip_limit(const underflow::Analysis& analysis,
                                           std::optional<double> largest) {
  std::vector<scale_history::TimelineFacts> timelines;
  for (const underflow::LogFindings& log : analysis.logs) {
    if (auto facts = scale_history::timeline_facts(log)) timelines.push_back(std::move(*facts));
  }
  return recommend::skip_limit({analysis, {}, {}, {}, timelines}, largest);
}

TEST_CASE("skip limit: a skipped step says how large gradients were at least", "[skip_limit]") {
  const auto limit = skip_limit(console({{11, 20, 1, 0x1p20, 0x1p19}}), 1e-3);
  REQUIRE(limit);
  CHECK(limit->max_abs == 65520 / 0x1p20);
  CHECK(limit->skipped_at == 0x1p20);
  CHECK(limit->first_step == 11);
  CHECK(limit->step == 20);
  CHECK(limit->censored);

  underflow::Analysis analysis = console({});
  CHECK_FALSE(skip_limit(analysis, 1e-3));
  analysis.logs[0].scalars.push_back(step_at(3, 0x1p18, true));
  analysis.logs[0].scalars.push_back(step_at(4, 0x1p17, false));
  const auto at_a_step = skip_limit(analysis, 1e-3);
  REQUIRE(at_a_step);
  CHECK(at_a_step->skipped_at == 0x1p18);
  CHECK(at_a_step->step == 3);
  CHECK_FALSE(at_a_step->first_step);
}

TEST_CASE("skip limit: the last of some skipped steps left the scale, or less than it became",
          "[skip_limit]") {
  CHECK(skip_limit(console({{1, 9, 3, 0x1p20, 0x1p17}}), 1.0)->skipped_at == 0x1p18);
  // It grew between, or a skipped step did not halve it: hysteresis.
  CHECK(skip_limit(console({{1, 9, 4, 0x1p20, 0x1p17}}), 1.0)->skipped_at == 0x1p18);
  CHECK(skip_limit(console({{1, 9, 1, 0x1p16, 0x1p16}}), 1.0)->skipped_at == 0x1p17);
  CHECK(skip_limit(console({{1, 9, 2, 0x1p16, 0x1p20}}), 1.0)->skipped_at == 0x1p21);
  CHECK(skip_limit(console({{1, 9, 3, std::nullopt, 0x1p17}}), 1.0)->skipped_at == 0x1p18);
  CHECK_FALSE(skip_limit(console({{1, {}, 2, 0x1p20, std::nullopt}}), 1.0));
  CHECK_FALSE(skip_limit(console({{1, 9, 70, 0x1p20, 0.0}}), 1.0));
  // A scale that training cannot apply tells nothing.
  CHECK_FALSE(skip_limit(console({{1, 9, 1, 0.0, 0.0}}), 1.0));
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK_FALSE(skip_limit(console({{1, 9, 1, infinite, infinite}}), 1.0));
}

TEST_CASE("skip limit: a scale that came down in vain bounds none", "[skip_limit]") {
  // From 2^16 to 2^8, the last skip at 2^9: 1e-3 there is 17 binades below overflow.
  const underflow::Analysis lowered = console({{1, 20, 8, 0x1p16, 0x1p8}});
  CHECK(skip_limit(lowered, 1e-3));  // lowered by 7 binades only
  const underflow::Analysis vain = console({{1, 20, 9, 0x1p16, 0x1p7}});
  CHECK_FALSE(skip_limit(vain, 1e-3));
  CHECK(skip_limit(vain, 1.0)->skipped_at == 0x1p8);  // 8 binades of room: a rare large gradient
  CHECK(skip_limit(vain, std::nullopt));
  // At a scale of 1, from where nothing was lowered.
  CHECK_FALSE(skip_limit(console({{1, 20, 5, 1.0, 1.0}}), 1e-3));
  CHECK(skip_limit(console({{1, 20, 5, 1.0, 1.0}}), 1e3));
  // What happened before, and ended well, counts all the same.
  const underflow::Analysis both =
      console({{11, 20, 1, 0x1p20, 0x1p19}, {991, 1040, 20, 0x1p19, 0x1p-1}});
  CHECK(skip_limit(both, 1e-3)->skipped_at == 0x1p20);
  // Ranges beside each other are one episode.
  CHECK_FALSE(skip_limit(console({{1, 10, 5, 0x1p16, 0x1p11}, {11, 20, 4, 0x1p11, 0x1p7}}), 1e-3));
  // So is one that failed at the same scale again.
  CHECK_FALSE(skip_limit(console({{1, 10, 9, 0x1p16, 0x1p7}, {11, 20, 1, 0x1p8, 0x1p7}}), 1e-3));
}

TEST_CASE("skip limit: a step with a scale of its own", "[skip_limit]") {
  const auto skipped_at = [](std::optional<double> at, std::optional<double> after,
                             bool entries = false) {
    underflow::Analysis analysis = console({});
    if (entries) analysis.logs[0].kinds[0].gaps = {frames::Gap::steps};
    for (const auto& [step, scale] : {std::pair(3, at), std::pair(4, after)}) {
      log::StepScalars scalars = step_at(step, 1, step == 3);
      scalars.loss_scale = scale;
      analysis.logs[0].scalars.push_back(scalars);
    }
    const auto limit = skip_limit(analysis, 1e-3);
    return limit ? limit->skipped_at : std::nullopt;
  };
  CHECK(skipped_at(0x1p18, 0x1p17) == 0x1p18);
  CHECK(skipped_at(0x1p18, 0x1p18) == 0x1p18);  // hysteresis
  CHECK(skipped_at(0x1p18, std::nullopt) == 0x1p18);
  CHECK(skipped_at(std::nullopt, 0x1p17) == 0x1p18);
  CHECK_FALSE(skipped_at(0x1p18, 0x1p10));            // another run
  CHECK(skipped_at(0x1p14, 0x1p20) == 0x1p21);        // it had grown before it was halved
  CHECK(skipped_at(0x1p18, 0x1p18, true) == 0x1p19);  // of entries that had steps between them
}

TEST_CASE("skip limit: a scale that is logged once it was halved", "[skip_limit]") {
  underflow::Analysis analysis = console({});
  analysis.logs[0].scalars.push_back(step_at(2, 0x1p18, false));
  analysis.logs[0].scalars.push_back(step_at(3, 0x1p17, true));
  analysis.logs[0].scalars.push_back(step_at(4, 0x1p17, false));
  CHECK(skip_limit(analysis, 1e-3)->skipped_at == 0x1p18);
  analysis.logs[0].scalars.front().found_inf = true;  // two skipped steps
  CHECK(skip_limit(analysis, 1e-3)->skipped_at == 0x1p17);
}

TEST_CASE("skip limit: a loss that is not a number is the model's", "[skip_limit]") {
  underflow::Analysis analysis = console({});
  analysis.logs[0].scalars.push_back(step_at(3, 0x1p16, true));
  analysis.logs[0].scalars.back().loss = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(skip_limit(analysis, 1e-3));
}

TEST_CASE("skip limit: a collapse ends at 1 or less and lasts", "[skip_limit]") {
  scale_history::TimelineFacts facts;
  CHECK(facts.collapse() == nullptr);
  facts.falls.resize(3);
  facts.falls[0].to = 0x1p7;
  facts.falls[1].to = 1;
  facts.falls[2].to = 0.5;
  for (scale_history::ScaleFall& fall : facts.falls) fall.from = 0x1p16;
  CHECK(facts.collapse() == &facts.falls[1]);
  facts.scale_last = 0x1p14;
  CHECK(facts.collapse() == &facts.falls[1]);
  facts.scale_last = 0x1p15;  // it came back
  CHECK(facts.collapse() == nullptr);
  facts.falls = {{{100, 120, 0x1p16, 2}, 15}};  // a thousandth, or less
  facts.scale_last = 2;
  facts.first = 1;
  facts.changes = {{100, 101, 0x1p16, 0x1p15}};
  CHECK(facts.collapse() == &facts.falls[0]);
  facts.first = 99;  // it starts there
  CHECK(facts.collapse() == nullptr);
}

TEST_CASE("skip limit: a fall ends where the scale holds far longer than in it", "[skip_limit]") {
  underflow::Analysis analysis = console({});
  double scale = 0x1p17;
  for (std::int64_t step = 0; step < 210; ++step) {
    if (step == 80 || step >= 200) scale /= 2;  // one everyday probe, then a collapse
    analysis.logs[0].scalars.push_back(step_at(step, scale, false));
  }
  const std::vector<scale_history::TimelineFacts> facts =
      findings_of(underflow::Analysis(analysis)).timelines;
  REQUIRE(facts.size() == 1);
  REQUIRE(facts[0].falls.size() == 1);
  CHECK(facts[0].falls[0].from == 0x1p16);
  CHECK(facts[0].falls[0].to == 0x1p6);
  CHECK(facts[0].falls[0].after == 199);
  CHECK(facts[0].falls[0].by == 209);
  CHECK(facts[0].falls[0].reductions == 10);

  underflow::Analysis slow = console({});
  for (std::int64_t step = 0; step < 500; ++step) {  // every 100 steps, so that all is one fall
    const double halved = static_cast<double>(1 << (step / 100));
    slow.logs[0].scalars.push_back(step_at(step, 0x1p16 / halved, false));
  }
  const std::vector<scale_history::TimelineFacts> one =
      findings_of(underflow::Analysis(slow)).timelines;
  REQUIRE(one.at(0).falls.size() == 1);
  CHECK(one[0].falls[0].reductions == 4);
}

}  // namespace test_skip_limit
