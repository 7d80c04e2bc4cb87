// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/parts.hpp"
#include "analyzers/study.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/small_run.hpp"
#include "catch.hpp"

namespace test_lasting {

using namespace halfscope;
using namespace halfscope::analyzers;

overflow::OverflowEvent event(overflow::Cause cause, std::int64_t step, std::int64_t last_step,
                              const std::string& log = "run") {
  overflow::OverflowEvent e;
  e.log = log;
  e.step = step;
  e.last_step = last_step;
  e.to_the_end = last_step == 9;
  e.cause = cause;
  return e;
}

/// The events of logs whose last recorded step is 9.
Study study_of(std::vector<overflow::OverflowEvent> events) {
  Study study;
  study.overflow.events = std::move(events);
  return study;
}

/// The first step of the event that lasts.
std::optional<std::int64_t> lasts_from(const Study& study) {
  const overflow::OverflowEvent* const found = study.overflow.lasting();
  return found == nullptr ? std::nullopt : std::optional(found->step);
}

TEST_CASE("An event lasts where no scale cures it and it reaches the last recorded step",
          "[table]") {
  struct Row {
    const char* what;
    overflow::Cause cause;
    std::int64_t step, last_step;
    bool what_if, lasts;
  };
  const Row row = GENERATE(values<Row>({
      {"NaN in the model", overflow::Cause::nan_in_model, 4, 9, false, true},
      {"overflow at scale 1", overflow::Cause::at_scale_1, 4, 9, false, true},
      {"from the first step on", overflow::Cause::at_scale_1, 0, 9, false, true},
      {"a smaller scale avoids it", overflow::Cause::by_scale, 4, 9, false, false},
      {"nobody knows whether one does", overflow::Cause::undetermined, 4, 9, false, false},
      {"finite values that would overflow", overflow::Cause::at_scale_1, 4, 9, true, false},
      {"it ends before", overflow::Cause::nan_in_model, 0, 4, false, false},
      {"the last step alone", overflow::Cause::nan_in_model, 9, 9, false, false},
      {"the last step alone, at scale 1", overflow::Cause::at_scale_1, 9, 9, false, false},
      {"a step alone, not the last", overflow::Cause::nan_in_model, 4, 4, false, false},
  }));
  CAPTURE(row.what);
  overflow::OverflowEvent only = event(row.cause, row.step, row.last_step);
  only.what_if = row.what_if;
  const Study study = study_of({only});
  CHECK(study.overflow.lasting() == (row.lasts ? study.overflow.events.data() : nullptr));
}

TEST_CASE("The first of the events that last is taken") {
  CHECK_FALSE(lasts_from(study_of({})));
  CHECK(lasts_from(study_of({event(overflow::Cause::nan_in_model, 0, 3),
                             event(overflow::Cause::by_scale, 1, 9),
                             event(overflow::Cause::at_scale_1, 4, 9),
                             event(overflow::Cause::nan_in_model, 5, 9)})) == 4);
}

TEST_CASE("The last recorded step is that of a log's tables and of its scalars") {
  const auto reaches_the_end = [](const test::SmallRun& run) {
    const overflow::OverflowFindings found = run.find();
    REQUIRE(found.events.size() == 1);
    CHECK(found.events[0].step == 4);
    CHECK(found.events[0].last_step == 9);
    return found.events[0].to_the_end;
  };
  test::SmallRun run;
  for (const int step : {0, 4, 9}) run.put_step(step);
  for (const int step : {4, 9}) run.replace("activation/b", step, {NAN});
  CHECK(reaches_the_end(run));
  test::SmallRun by_tables = run;
  by_tables.put_step(12);
  CHECK_FALSE(reaches_the_end(by_tables));
  run.scalars(10).loss = 2.5;
  CHECK_FALSE(reaches_the_end(run));
}

/// A recommendation of 2^static_log2 that a tensor of `log` limits.
recommend::Recommendation recommended(int static_log2, int headroom = 1,
                                      const std::string& log = "run") {
  recommend::Recommendation advice;
  advice.static_log2 = advice.highest_log2 = static_log2;
  advice.asked.headroom_bits = headroom;
  advice.limited_by.emplace().log = log;
  advice.above_target = {"weight_grad/a"};
  advice.flushed_at_recommended.count = 3;
  advice.flushed_at_recommended.of = 7;
  return advice;
}

/// Whether the scale is taken back, and with it all that belongs to it.
bool refused(Study study, const recommend::Recommendation& advice) {
  study.advice = advice;
  recommend::refuse_divergence(study.advice, study.overflow);
  const recommend::Recommendation& left = study.advice;
  const bool none = left.no_scale == recommend::NoScale::diverges;
  CHECK(left.static_log2 == (none ? std::nullopt : advice.static_log2));
  CHECK(left.above_target.empty() == (none || advice.above_target.empty()));
  CHECK(left.flushed_at_recommended.count == (none ? Interval() : Interval(3)));
  CHECK(left.flushed_at_recommended.of == (none ? Interval() : Interval(7)));
  CHECK(left.limited_by.has_value() == advice.limited_by.has_value());
  return none;
}

TEST_CASE("A scale is taken back below 2^-24, and below 1 where the run ends in NaN", "[table]") {
  struct Row {
    const char* what;
    int static_log2, headroom;
    bool ends_in_nan, refused;
  };
  const Row row = GENERATE(values<Row>({
      {"2^-24 is binary16's least number", -24, 1, false, false},
      {"a loss times less is lost itself", -25, 1, false, true},
      {"a scale of 1", 0, 1, true, false},
      {"half of it", -1, 1, true, true},
      {"half of it, of a run that goes on", -1, 1, false, false},
      // The usual headroom is one binade: with 9 the scale is 2^8 smaller than usual.
      {"usually 1", -8, 9, true, false},
      {"usually 2^-1", -9, 9, true, true},
      {"usually 2^-24", -32, 9, false, false},
      {"usually 2^-25", -33, 9, false, true},
      {"without headroom 1, usually 2^-1", 0, 0, true, true},
      {"without headroom 2, usually 1", 1, 0, true, false},
  }));
  CAPTURE(row.what);
  const std::int64_t last = row.ends_in_nan ? 9 : 4;
  const Study study = study_of({event(overflow::Cause::nan_in_model, 4, last)});
  CHECK(refused(study, recommended(row.static_log2, row.headroom)) == row.refused);
}

TEST_CASE("A run ends in NaN where its last recorded step has it, in the log of the limit") {
  const overflow::OverflowEvent last_alone = event(overflow::Cause::nan_in_model, 9, 9);
  overflow::OverflowEvent what_if = last_alone;
  what_if.what_if = true;
  CHECK(refused(study_of({last_alone}), recommended(-1)));
  CHECK(refused(study_of({event(overflow::Cause::by_scale, 0, 1), last_alone}), recommended(-1)));
  CHECK_FALSE(refused(study_of({}), recommended(-1)));
  CHECK_FALSE(refused(study_of({what_if}), recommended(-1)));
  CHECK_FALSE(refused(study_of({event(overflow::Cause::by_scale, 4, 9)}), recommended(-1)));
  CHECK_FALSE(refused(study_of({last_alone}), recommended(-1, 1, "another")));  // without NaN
  Study goes_on = study_of({last_alone});
  goes_on.overflow.events[0].to_the_end = false;
  CHECK_FALSE(refused(goes_on, recommended(-1)));
}

TEST_CASE("Without a scale, or a tensor that limits it, nothing is taken back") {
  const Study study = study_of({event(overflow::Cause::nan_in_model, 4, 9)});
  recommend::Recommendation none = recommended(-30), by_nothing = recommended(-30);
  none.static_log2.reset();
  none.no_scale = recommend::NoScale::all_zero;
  by_nothing.limited_by.reset();
  CHECK_FALSE(refused(study, none));
  CHECK_FALSE(refused(study, by_nothing));
  CHECK(refused(study, recommended(-30)));
}

}  // namespace test_lasting
