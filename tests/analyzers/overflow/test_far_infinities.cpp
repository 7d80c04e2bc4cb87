// SPDX-License-Identifier: Apache-2.0
// Infinities far above what gradients reach in other steps: what is known of their cause, and that
// they bound no scale where none cured them.
#include <cmath>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/small_run.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"

namespace test_far_infinities {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

/// Gradients of 2^neighbours, but for one run of steps that halve the scale from 2^first to
/// 2^last and find infinities each time.
SmallRun falling(int first, int last, int neighbours) {
  SmallRun run(Dtype::f16);
  const auto gradient = static_cast<float>(std::ldexp(1.0, neighbours));
  std::int64_t step = 0;
  run.put_step(step++, std::ldexp(1.0, first), gradient);
  for (int k = first; k >= last; --k, ++step) {
    const double scale = std::ldexp(1.0, k);
    run.put_step(step, scale, gradient);
    run.replace("activation_grad/b", step, {INFINITY, 0.0f}, scale);
  }
  run.put_step(step, std::ldexp(1.0, last - 1), gradient);
  return run;
}

overflow::OverflowEvent only(const overflow::OverflowFindings& found) {
  REQUIRE(found.events.size() == 1);
  return found.events.front();
}

TEST_CASE("infinities at scales far below and above: what each leaves known", "[table]") {
  struct Row {
    const char* what;
    int first, last, neighbours;
    overflow::Cause wanted;
    bool not_scale_related;
  };
  const Row row = GENERATE(values<Row>({
      {"down to 2^-18, no scale cures it", 16, -18, -10, overflow::Cause::nan_in_model, true},
      {"down to 1: 26 binades of room", 16, 0, -10, overflow::Cause::nan_in_model, true},
      {"down to 2^5: 21 binades of room", 20, 5, -10, overflow::Cause::nan_in_model, true},
      {"17 binades of room, lowered by 8", 8, 0, -1, overflow::Cause::nan_in_model, true},
      {"lowered by 7 only", 7, 0, -1, overflow::Cause::undetermined, false},
      {"15.9996 binades of room", 16, 0, 0, overflow::Cause::undetermined, false},
      {"8.9996 binades of room at scale 1", 16, 0, 7, overflow::Cause::undetermined, false},
      {"7.9996: gradients that reach 256 may reach 65520", 8, 0, 8, overflow::Cause::at_scale_1,
       false},
      {"one infinity, 25 binades of room", 1, 1, -10, overflow::Cause::undetermined, false},
      {"one infinity, 8.9996 binades of room", 10, 10, -3, overflow::Cause::undetermined, false},
      {"one infinity, 7.9996 binades of room", 10, 10, -2, overflow::Cause::by_scale, false},
      {"a scale that starts too high", 16, 10, 5, overflow::Cause::by_scale, false},
  }));
  CAPTURE(row.what);
  const SmallRun run = falling(row.first, row.last, row.neighbours);
  const overflow::OverflowEvent event = only(run.find());
  CAPTURE(event.why);
  CHECK(event.cause == row.wanted);
  CHECK(event.not_scale_related == row.not_scale_related);
  CHECK(event.safe_log2.has_value() == (row.wanted == overflow::Cause::by_scale));
  CHECK(
      (row.wanted != overflow::Cause::undetermined || event.why.find("FP32") != std::string::npos));
}

TEST_CASE("infinities that no scale cured bound no recommendation", "[table]") {
  const SmallRun run = falling(16, -18, -10);
  const Study found = study(findings_of(run.analyze_at()), {}, {});
  CHECK(found.advice.static_log2 == 24);  // 2^-10 * 2^24 * 2 < 65520
  CHECK_FALSE(found.advice.overflow_not_identifiable);
  CHECK(found.advice.limited_by->max_abs == 0x1p-10);
  CHECK(found.advice.nonfinite_steps.size() == 35);
  CHECK(found.advice.steps_left_out == 35);
  REQUIRE(found.advice.nan_in_model);
  CHECK(found.advice.nan_in_model->tensor == "activation_grad/b");
  CHECK_FALSE(found.advice.nan_in_model->nan);
  REQUIRE_FALSE(found.advice.dynamic.empty());
  CHECK(found.advice.dynamic[0].init == 0x1p25);
  for (const overflow::Headroom& h : found.overflow.headroom) CHECK_FALSE(h.censored);
  // One that may have been by the scale still bounds it.
  const Study one = study(findings_of(falling(1, 1, -10).analyze_at()), {}, {});
  CHECK(one.advice.limited_by->censored);
  CHECK(one.advice.static_log2 == -1);
}

TEST_CASE("the same by scalars alone", "[table]") {
  SmallRun run(Dtype::f16);
  run.put_step(0, 65536.0, 0x1p-10f);
  for (int k = 16; k >= -18; --k) {
    log::StepScalars& s = run.scalars(17 - k);
    s.loss = 2.5;
    s.loss_scale = std::ldexp(1.0, k);
    s.max_abs_weight_grad = INFINITY;
  }
  run.put_step(60, 0x1p-19, 0x1p-10f);
  const Study found = study(findings_of(run.analyze_at()), {}, {});
  CHECK(only(found.overflow).cause == overflow::Cause::nan_in_model);
  CHECK(found.advice.static_log2 == 24);
  CHECK(found.advice.steps_left_out == 35);
}

TEST_CASE("no finite step at all: what FP16 can hold is compared with", "[table]") {
  SmallRun run(Dtype::f16);
  const int last = GENERATE(-18, -12, -4);
  for (int k = 16; k >= last; --k) {
    const double scale = std::ldexp(1.0, k);
    run.put_step(16 - k, scale);
    run.replace("weight_grad/b.weight", 16 - k, {INFINITY}, scale);
  }
  const overflow::Cause wanted = last == -18   ? overflow::Cause::nan_in_model
                                 : last == -12 ? overflow::Cause::undetermined
                                               : overflow::Cause::at_scale_1;
  CHECK(only(run.find()).cause == wanted);
}

TEST_CASE("no scale cures it, but the forward pass may have overflowed", "[table]") {
  SmallRun run(Dtype::f16);
  for (int k = 16; k >= 0; --k) {
    const double scale = std::ldexp(1.0, k);
    run.put("weight_grad/b.weight", 16 - k, {k == 16 ? 1.0f : INFINITY}, scale);
  }
  const overflow::OverflowEvent event = only(run.find());
  CHECK(event.cause == overflow::Cause::undetermined);
  CHECK(event.not_scale_related);
  CHECK(event.why.find("neither its loss nor its activations") != std::string::npos);
}

}  // namespace test_far_infinities
