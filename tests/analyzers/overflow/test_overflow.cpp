// SPDX-License-Identifier: Apache-2.0
#include "analyzers/overflow/overflow.hpp"

#include <cmath>

#include "analyzers/small_run.hpp"
#include "catch.hpp"

namespace test_overflow {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

overflow::OverflowEvent only(const overflow::OverflowFindings& found) {
  REQUIRE(found.events.size() == 1);
  const overflow::OverflowEvent& event = found.events.front();
  // A sentence, or two, that stands alone and does not repeat the cause.
  CHECK_THAT(event.why, Catch::Matches("[A-Z0-9].*[^.]\\."));
  CHECK_THAT(event.why, !Catch::Contains("no loss scale") && !Catch::Contains("would have held"));
  return event;
}

std::vector<std::string> relations(const overflow::OverflowEvent& event) {
  std::vector<std::string> all;
  for (const overflow::Lead& lead : event.leads) all.push_back(lead.relation + ": " + lead.name);
  return all;
}

using Names = std::vector<std::string>;

TEST_CASE("three different answers to an infinity or NaN in an FP16 run", "[table]") {
  SmallRun run(Dtype::f16);
  run.put_step(0, 65536.0, 0.75f);
  run.put_step(1, 65536.0);
  run.put_step(2, 32768.0);
  SECTION("gradients by the scale: a smaller one holds") {
    run.replace("activation_grad/b", 1, {INFINITY, 1.0f}, 65536.0);
    run.replace("activation_grad/a", 1, {NAN, INFINITY}, 65536.0);
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::by_scale);
    CHECK(event.tensor == "activation_grad/b");
    CHECK(event.inf == 1);
    CHECK(event.loss_scale == 65536.0);
    // The neighbours reach 0.75, which 2^16 still holds; but it did not hold here.
    CHECK(event.safe_log2 == 15);
    CHECK(event.estimated);
  }
  SECTION("gradients by the scale: the neighbours' magnitude bounds it") {
    run.replace("weight_grad/b.weight", 0, {1000.0f}, 1.0);
    run.replace("activation_grad/b", 1, {INFINITY}, 65536.0);
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::by_scale);
    CHECK(event.safe_log2 == 6);  // 1000 * 2^6 < 65520 < 1000 * 2^7
  }
  SECTION("an activation: no scale acts on it") {
    run.replace("activation/b", 1, {INFINITY});
    run.replace("activation/c", 1, {NAN});
    run.replace("activation_grad/c", 1, {NAN}, 65536.0);
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::at_scale_1);
    CHECK(event.tensor == "activation/b");
    CHECK_FALSE(event.safe_log2);
  }
  SECTION("NaN in an activation with no infinity before it") {
    run.replace("activation/b", 1, {NAN});
    run.replace("activation/c", 1, {INFINITY});
    run.replace("activation_grad/c", 1, {INFINITY}, 65536.0);
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::nan_in_model);
    CHECK(event.tensor == "activation/b");
  }
  SECTION("NaN in a weight") {
    run.replace("weight/c.weight", 1, {NAN});
    run.replace("activation/c", 1, {NAN});
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::nan_in_model);
    CHECK(event.tensor == "weight/c.weight");
  }
  SECTION("an infinite weight overflows as it is held") {
    run.replace("weight/c.weight", 1, {INFINITY});
    CHECK(only(run.find()).cause == overflow::Cause::at_scale_1);
  }
}

TEST_CASE("a scale that collapses to 1 without help was not the cause", "[table]") {
  SmallRun run(Dtype::f16);
  run.put_step(0, 4.0, 5000.0f);  // 3.7 binades below overflow at scale 1
  for (const int step : {1, 2, 3}) {
    const double scale = std::ldexp(1.0, 3 - step);
    run.put_step(step, scale);
    run.replace("activation_grad/c", step, {INFINITY}, scale);
    run.scalars(step).loss_scale = scale;
  }
  const overflow::OverflowEvent event = only(run.find());
  CHECK(event.step == 1);
  CHECK(event.last_step == 3);
  CHECK(event.cause == overflow::Cause::at_scale_1);
}

TEST_CASE("neighbours that overflow without a scale too: no smaller scale of 1 or more helps",
          "[table]") {
  SmallRun run(Dtype::f16);
  run.put_step(0, 0.5, 100000.0f);  // recorded at half: 50000
  run.put_step(1, 2.0);
  run.replace("activation_grad/c", 1, {INFINITY}, 2.0);
  const overflow::OverflowFindings found = run.find();
  REQUIRE(found.events.size() == 2);  // what step 0 would do at scale 1 is an event of its own
  CHECK(found.events[0].what_if);
  CHECK(found.events[0].step == 0);
  CHECK_FALSE(found.events[1].what_if);
  CHECK(found.events[1].cause == overflow::Cause::at_scale_1);
}

TEST_CASE("infinities and NaN of wide formats are the model's", "[table]") {
  SmallRun run(Dtype::f32);
  for (const int step : {0, 1, 2}) run.put_step(step);
  for (const char* name : {"weight/b.weight", "activation/b", "activation_grad/b"}) {
    CAPTURE(name);
    SmallRun bad = run;
    bad.replace(name, 1, {INFINITY});
    const overflow::OverflowEvent event = only(bad.find(1024));
    CHECK(event.cause == overflow::Cause::nan_in_model);
    CHECK_FALSE(event.what_if);
    CHECK(event.tensor == name);
  }
}

TEST_CASE("a wide gradient in an FP16 run: what came into it decides", "[table]") {
  SmallRun run(Dtype::f16);
  for (const int step : {0, 1}) run.put_step(step, 1024.0);
  run.put_wide("weight_grad/b.bias", 1, {NAN});
  CHECK(only(run.find()).cause == overflow::Cause::nan_in_model);  // activation_grad/b is finite

  SmallRun blind(Dtype::f16);
  blind.put("weight_grad/b.weight", 1, {1.0f}, 1024.0);
  blind.put_wide("weight_grad/b.bias", 1, {NAN});
  blind.scalars(1).loss = 1.0;
  const overflow::OverflowEvent event = only(blind.find());
  CHECK(event.cause == overflow::Cause::undetermined);
  CHECK(event.why.find("activation_grad") != std::string::npos);
}

TEST_CASE("what is missing is said", "[table]") {
  SECTION("the forward pass") {
    SmallRun run(Dtype::f16);
    run.put("weight_grad/b.weight", 0, {512.0f}, 1024.0);
    run.put("weight_grad/b.weight", 1, {INFINITY}, 1024.0);
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::undetermined);
    CHECK(event.why.find("neither its loss nor its activations") != std::string::npos);
  }
  SECTION("finite steps") {
    SmallRun run(Dtype::f16);
    run.put_step(0, 1024.0);
    run.replace("weight_grad/b.weight", 0, {INFINITY}, 1024.0);
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::undetermined);
    CHECK(event.why.find("no other step") != std::string::npos);
  }
  SECTION("the scale") {
    SmallRun run(Dtype::f16);
    run.put("weight_grad/b.weight", 0, {1.0f});
    run.put("weight_grad/b.weight", 1, {INFINITY, 1.0f});
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::undetermined);
    CHECK(event.why.find("--recorded-scale") != std::string::npos);
  }
  SECTION("NaN alone at a scale, with no retry") {
    SmallRun run(Dtype::f16);
    for (const int step : {0, 1, 2}) run.put_step(step, 1024.0);
    run.replace("weight_grad/b.weight", 1, {NAN}, 1024.0);
    CHECK(only(run.find()).cause == overflow::Cause::undetermined);
    run.put_step(2, 512.0);  // the last record of a step holds
    CHECK(only(run.find()).cause == overflow::Cause::by_scale);
  }
}

TEST_CASE("a dynamic scale that grew to its limit probes it", "[table]") {
  struct Row {
    std::string_view why;
    std::vector<double> scales;  ///< of steps 0 to 3; step 2 is infinite
    bool skipped, probe;
  };
  const Row row = GENERATE(Row{"it grew", {512, 512, 1024, 512}, true, true},
                           Row{"it grew before", {512, 1024, 1024, 512}, true, true},
                           Row{"it began there", {1024, 1024, 1024, 512}, true, false},
                           Row{"it had come down", {2048, 1024, 1024, 512}, true, false},
                           Row{"the step was applied", {512, 512, 1024, 512}, false, false});
  CAPTURE(row.why);
  SmallRun run(Dtype::f16);
  for (int step = 0; step < 4; ++step) {
    const double scale = row.scales[static_cast<std::size_t>(step)];
    run.put_step(step, scale, 20.0f);
    if (step == 2) run.replace("activation_grad/b", step, {INFINITY}, scale);
    run.scalars(step).found_inf = step == 2 && row.skipped;
  }
  const overflow::OverflowEvent event = only(run.find());
  CHECK(event.cause == overflow::Cause::by_scale);
  CHECK(event.growth_probe == row.probe);
}

TEST_CASE("what an FP32 run would do at the scale asked about", "[table]") {
  SmallRun run;
  for (const int step : {0, 1, 2, 3}) run.put_step(step, 1.0, step == 2 ? 70.1f : 0.5f);
  CHECK(run.find(512).events.empty());  // 70.1 * 512 < 65520
  const overflow::OverflowEvent event = only(run.find(1024));
  CHECK(event.what_if);
  CHECK(event.cause == overflow::Cause::by_scale);
  CHECK(event.step == 2);
  CHECK(event.last_step == 2);
  CHECK(event.tensor == "activation_grad/c");
  CHECK(event.overflow == Interval(1));
  CHECK(event.safe_log2 == 9);
  CHECK_FALSE(event.estimated);
  run.replace("weight_grad/b.weight", 2, {65520.0f});  // the most restrictive holds for the step
  CHECK(only(run.find(1024)).cause == overflow::Cause::at_scale_1);
  run.replace("weight_grad/b.weight", 2, {std::nextafter(65520.0f, 0.0f)});
  CHECK(only(run.find(1024)).safe_log2 == 0);
}

TEST_CASE("activations overflow without a scale, whatever scale is asked about", "[table]") {
  SmallRun run;
  for (const int step : {0, 1}) run.put_step(step);
  run.replace("activation/b", 1, {65504.0f, 1.0f});
  CHECK(run.find(1024).events.empty());
  run.replace("activation/b", 1, {65520.0f, 1.0f, 9000.0f});
  const overflow::OverflowEvent event = only(run.find(16));
  CHECK(event.what_if);
  CHECK(event.cause == overflow::Cause::at_scale_1);
  CHECK(event.tensor == "activation/b");
  CHECK(event.overflow == Interval(1));  // 9000 * 16 is no matter
  CHECK_FALSE(event.loss_scale);
}

TEST_CASE("consecutive recorded steps are one event, others are others", "[table]") {
  SmallRun run(Dtype::f16);
  for (const int step : {0, 10, 20, 30, 40}) run.put_step(step, 1024.0);
  for (const int step : {10, 20, 40}) {
    run.replace("weight_grad/b.weight", step, {INFINITY}, 1024.0);
  }
  const overflow::OverflowFindings found = run.find();
  REQUIRE(found.events.size() == 2);
  CHECK(found.events[0].step == 10);
  CHECK(found.events[0].last_step == 20);
  CHECK(found.events[1].step == 40);
  run.scalars(15).loss = 2.0;  // a step between without tables, where all is well
  run.scalars(15).found_inf = false;
  CHECK(run.find().events.size() == 3);
}

TEST_CASE("frames lead to the first tensor in the order of computation", "[table]") {
  SmallRun run(Dtype::f16);
  for (int step = 0; step < 6; ++step) run.put_step(step, 1024.0);
  SECTION("of a weight gradient") {
    run.replace("weight_grad/b.weight", 5, {INFINITY}, 1024.0);
    const overflow::OverflowEvent event = only(run.find());
    CHECK(relations(event) == Names{"itself: weight_grad/b.weight",
                                    "output gradient: activation_grad/b", "input: activation/a",
                                    "weight: weight/b.weight"});
    std::vector<std::int64_t> steps;
    for (const overflow::TensorState& glimpse : event.leads[1].glimpses)
      steps.push_back(glimpse.step);
    CHECK(steps == std::vector<std::int64_t>{2, 3, 4, 5});
    CHECK(event.leads[0].glimpses.back().inf == 1);
    CHECK(event.leads[1].glimpses.back().max_abs == 0.5);
  }
  SECTION("of an output gradient: backward through the next module's weight") {
    run.replace("activation_grad/b", 5, {INFINITY}, 1024.0);
    run.replace("weight_grad/c.weight", 5, {1.0f}, 1024.0);
    CHECK(relations(only(run.find())) == Names{"itself: activation_grad/b",
                                               "output gradient: activation_grad/c",
                                               "weight: weight/c.weight"});
  }
  SECTION("of an activation") {
    run.replace("activation/c", 5, {INFINITY});
    CHECK(relations(only(run.find())) ==
          Names{"itself: activation/c", "input: activation/b", "weight: weight/c.weight"});
  }
}

TEST_CASE("steps that have scalars alone", "[table]") {
  SmallRun run(Dtype::f16);
  for (const int step : {0, 4}) run.put_step(step, 1024.0, 4.0f);
  log::StepScalars& s = run.scalars(2);
  s.loss_scale = 65536.0;
  SECTION("found_inf with a finite loss") {
    s.loss = 2.0;
    s.found_inf = true;
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::by_scale);
    CHECK(event.from_scalars);
    CHECK(event.tensor == "weight_grad");
    CHECK(event.safe_log2 == 13);  // 4 * 2^13 < 65520 < 4 * 2^14
  }
  SECTION("an infinite gradient, its loss not recorded") {
    s.max_abs_activation_grad = INFINITY;
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.cause == overflow::Cause::undetermined);
    CHECK(event.tensor == "activation_grad");
  }
  SECTION("a NaN loss without that step's activations") {
    s.loss = NAN;
    s.max_abs_activation_grad = NAN;
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.tensor == "loss");
    CHECK(event.cause == overflow::Cause::undetermined);
  }
  SECTION("a NaN loss, activations finite") {
    run.scalars(4).loss = NAN;
    run.replace("activation_grad/c", 4, {INFINITY}, 1024.0);  // a consequence
    const overflow::OverflowEvent event = only(run.find());
    CHECK(event.tensor == "loss");
    CHECK(event.cause == overflow::Cause::nan_in_model);
  }
}

TEST_CASE("scalars of gradients that would overflow at the scale asked about", "[table]") {
  SmallRun run;
  run.put_step(0);
  run.scalars(1).max_abs_weight_grad = 100.0;
  run.scalars(2).max_abs_weight_grad = 1.0;
  CHECK(run.find(512).events.empty());
  const overflow::OverflowEvent event = only(run.find(1024));
  CHECK(event.step == 1);
  CHECK(event.last_step == 1);
  CHECK(event.cause == overflow::Cause::by_scale);
  CHECK(event.safe_log2 == 9);
  CHECK(event.from_scalars);
}

TEST_CASE("a log of one bad step in two stays one event each, and fast", "[table]") {
  SmallRun run(Dtype::f16);
  constexpr int kSteps = 400;
  for (int step = 0; step < kSteps; ++step) {
    run.put_step(step, 1024.0);
    if (step % 2 == 1) run.replace("weight_grad/b.weight", step, {INFINITY}, 1024.0);
  }
  const overflow::OverflowFindings found = run.find();
  REQUIRE(found.events.size() == kSteps / 2);
  CHECK(found.events.back().cause == overflow::Cause::by_scale);
  for (const overflow::OverflowEvent& event : found.events) {
    CHECK(event.leads.size() <= 6);
    for (const overflow::Lead& lead : event.leads) CHECK(lead.glimpses.size() <= 4);
  }
}

TEST_CASE("a loss held in FP16 that would overflow at the scale asked about", "[table]") {
  for (const bool half : {true, false}) {
    SmallRun run;
    if (half) run.hold_loss_in(Dtype::f16);
    for (const int step : {0, 1}) run.put_step(step);
    run.scalars(1).loss = -100.0;
    CHECK(run.find(512).events.empty());
    const overflow::OverflowFindings found = run.find(1024);
    REQUIRE(found.events.size() == (half ? 1 : 0));
    if (!half) continue;
    const overflow::OverflowEvent event = only(found);
    CHECK(event.step == 1);
    CHECK(event.tensor == "loss");
    CHECK(event.cause == overflow::Cause::by_scale);
    CHECK(event.safe_log2 == 9);
  }
}

}  // namespace test_overflow
