// SPDX-License-Identifier: Apache-2.0
// How a run did whose log has scalars alone, in words.
#include "catch.hpp"
#include "reports/answer/timeline.hpp"

namespace halfscope::reports::answer::test_timeline {
namespace {

using analyzers::scale_history::Nonfinite;
using analyzers::scale_history::Quantity;
using analyzers::scale_history::RunState;
using analyzers::scale_history::ScaleSettings;
using analyzers::scale_history::TimelineFacts;

TEST_CASE("a scale of 0 is said not to be one") {
  TimelineFacts facts;
  facts.scale_first = facts.scale_last = facts.scale_least = facts.scale_most = 0;
  CHECK(state_finding(facts).title ==
        "The log does not tell whether its loss scale is normal: it is 0 throughout, as a setting "
        "may be and no scale in use is.");
}

TEST_CASE("one clean step is one") {
  TimelineFacts facts;
  facts.state = RunState::normal;
  facts.settings = ScaleSettings{1024, Interval(1)};
  CHECK(state_finding(facts).action ==
        "The scale doubles after 1 clean step, which costs a step each time.");
  facts.settings->window = Interval(1, 500);
  facts.settings->longer = 1000;
  CHECK(state_finding(facts).action ==
        "The scale doubles after 500 clean steps at the most, which costs a step each time: let it "
        "double after 1000.");
}

TEST_CASE("growth costs as many steps as hysteresis has") {
  TimelineFacts facts;
  facts.state = RunState::normal;
  facts.settings = ScaleSettings{1024, Interval(1000)};
  facts.settings->hysteresis = 2;
  CHECK(state_finding(facts).action ==
        "The scale doubles after 1000 clean steps, which costs 2 steps each time.");
}

TEST_CASE("what is counted by entries is said of entries") {
  TimelineFacts facts;
  facts.state = RunState::broken;
  Nonfinite norms{Quantity::gradient_norm, 2, 9, 5};
  norms.since = 6;
  norms.last_since = 9;
  norms.count_since = 4;
  norms.last_before = 2;
  facts.nonfinite = {norms};
  for (const bool numbered : {false, true}) {
    facts.numbered = numbered;
    const std::string what = scale_alarms(facts, analyzers::frames::Tool::other).at(0).title;
    CHECK((what.find("that of entry 2 was followed") != std::string::npos) == numbered);
    CHECK((what.find("that of step 2 was followed") != std::string::npos) == !numbered);
  }
}

}  // namespace
}  // namespace halfscope::reports::answer::test_timeline
