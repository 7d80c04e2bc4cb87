// SPDX-License-Identifier: Apache-2.0
// Infinities in gradients that are recorded as wide: recommendation and policies go by one rule.
#include <cmath>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/replay/policy_study.hpp"
#include "analyzers/small_run.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"

namespace test_overflow_cause {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

Study study_with_series(const std::filesystem::path& run) {
  return study(analyze({run}, {}, {}, {.series = true}, {}), {}, {});
}

/// Six steps at scale 4096 whose gradients reach 2^neighbours; the fourth is infinite. Tables of
/// FP32, or of FP16, at the first step and, of every third, at the fourth.
struct CastRun {
  int neighbours = 0;
  bool activation_grads = true;
  Dtype computed = Dtype::f32;
  int tables_every = 3;

  static constexpr double kScale = 4096;

  Study study_of(const TempFolder& folder) const {
    const auto largest = static_cast<float>(std::ldexp(1.0, neighbours));
    {
      log::RunLogWriter writer(folder / "run", {});
      for (std::int64_t step = 0; step < 6; ++step) {
        log::StepScalars s;
        s.step = step;
        s.loss = 2.5;
        s.loss_scale = kScale;
        s.found_inf = step == 3;
        s.max_abs_weight_grad = step == 3 ? INFINITY : largest;
        if (activation_grads) s.max_abs_activation_grad = largest / 2;
        writer.write(s);
        if (step % tables_every != 0) continue;
        put(writer, "weight_grad/b.weight", step, step == 3 ? INFINITY : largest);
        if (activation_grads) put(writer, "activation_grad/b", step, largest / 2);
      }
    }
    return study_with_series(folder / "run");
  }

 private:
  void put(log::RunLogWriter& writer, const char* name, std::int64_t step, float value) const {
    log::TensorRecord record = record_of(name, step, {value, 0x1p-12f});
    record.computed_dtype = computed;
    writer.write(record);
  }
};

TEST_CASE("an infinity of wide gradients bounds a scale for all or for none", "[table]") {
  struct Row {
    const char* what;
    CastRun run;
    bool rounded;
    overflow::Cause cause;
  };
  const Row row = GENERATE(values<Row>({
      {"FP16", {0, true, Dtype::f16}, true, overflow::Cause::by_scale},
      {"FP32, 3.9996 binades below 65520", {0}, true, overflow::Cause::undetermined},
      {"FP32, 4.9996 binades below", {-1}, false, overflow::Cause::nan_in_model},
      {"the same, the infinity in scalars alone",
       {0, true, Dtype::f32, 9},
       true,
       overflow::Cause::undetermined},
      {"FP32 weights alone", {-1, false}, true, overflow::Cause::undetermined},
      {"FP32 weights alone, far below", {-14, false}, true, overflow::Cause::undetermined},
  }));
  CAPTURE(row.what);
  const TempFolder folder;
  Study found = row.run.study_of(folder);
  REQUIRE(found.overflow.events.size() == 1);
  const overflow::OverflowEvent event = found.overflow.events.front();
  CAPTURE(event.why);
  CHECK(event.cause == row.cause);
  CHECK(event.maybe_rounded == (row.rounded && row.run.computed == Dtype::f32));
  REQUIRE(found.series.series.size() == 1);
  CHECK(found.series.series[0].seen[3].overflow_from == (row.rounded ? CastRun::kScale : 0));
  CHECK(found.advice.overflow_not_identifiable == row.rounded);
  // 65520 / 4096 is the least it can stand for: one binade below, and one of headroom.
  const int free = 15 - row.run.neighbours - 1;
  CHECK(found.advice.static_log2 == (row.rounded ? 10 : free));
  CHECK(found.advice.steps_left_out == (row.rounded ? 0 : 1));
  const replay::PolicyStudy policies =
      replay::study_magnitudes(std::move(found.series.series[0]), {});
  REQUIRE(policies.fixed);
  CHECK(policies.fixed->final_scale == std::ldexp(1.0, *found.advice.static_log2));
}

TEST_CASE("lowering the scale far in vain clears FP16 of wide infinities, too", "[table]") {
  const bool activation_grads = GENERATE(false, true);
  CAPTURE(activation_grads);
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    for (std::int64_t step = 0; step < 20; ++step) {
      const bool bad = step > 0 && step < 19;
      log::StepScalars s;
      s.step = step;
      s.loss = 2.5;
      s.loss_scale = std::ldexp(65536.0, -static_cast<int>(step));
      s.found_inf = bad;
      s.max_abs_weight_grad = bad ? INFINITY : 0.015625;
      if (activation_grads) s.max_abs_activation_grad = 0.015625;
      writer.write(s);
    }
    log::TensorRecord record = record_of("weight_grad/b.weight", 0, {0.015625f, 0x1p-12f});
    record.computed_dtype = Dtype::f32;
    writer.write(record);
    record.name = "activation_grad/b";
    if (activation_grads) writer.write(record);
  }
  Study found = study_with_series(folder / "run");
  REQUIRE(found.overflow.events.size() == 1);
  CAPTURE(found.overflow.events[0].why);
  CHECK(found.overflow.events[0].cause == overflow::Cause::nan_in_model);
  CHECK_FALSE(found.overflow.events[0].maybe_rounded);
  CHECK(found.series.series.at(0).seen[1].overflow_from == 0);
  CHECK_FALSE(found.advice.overflow_not_identifiable);
}

TEST_CASE("tables alone show that a cast may have made an infinity", "[table]") {
  for (const float largest : {16.0f, 1.0f}) {  // 2 and 6 binades below 65520
    SmallRun run(Dtype::f32);
    for (const int step : {0, 1, 2}) run.put_step(step, 1024.0, largest);
    run.replace("weight_grad/b.weight", 1, {INFINITY}, 1024.0);
    const overflow::OverflowFindings found = run.find();
    REQUIRE(found.events.size() == 1);
    CHECK(found.events[0].maybe_rounded == (largest == 16));
  }
}

TEST_CASE("a table of wide infinities bounds a scale without a scalar", "[table]") {
  SmallRun run;
  for (const int step : {0, 1, 2}) {
    run.put_wide("weight_grad/b.weight", step, {step == 1 ? INFINITY : 0x1p-10f});
    run.scalars(step).loss = 2.5;
    run.scalars(step).loss_scale = 1024.0;
  }
  const Study found = study(findings_of(run.analyze_at()), {}, {});
  CHECK(found.advice.overflow_not_identifiable);
  CHECK(found.advice.static_log2 == 8);  // below 2^10, and a binade to spare
}

TEST_CASE("infinities at scale 1 of wide gradients bound no recommendation", "[table]") {
  SmallRun run;
  for (const int step : {0, 1, 2}) {
    run.put_wide("weight_grad/b.weight", step, {step == 1 ? INFINITY : 0.5f});
    run.scalars(step).loss = 2.5;
    run.scalars(step).loss_scale = 1.0;
  }
  const Study found = study(findings_of(run.analyze_at()), {}, {});
  REQUIRE(found.overflow.events.size() == 1);
  CHECK(found.overflow.events[0].cause == overflow::Cause::undetermined);
  CHECK_FALSE(found.overflow.events[0].maybe_rounded);
  CHECK_FALSE(found.advice.overflow_not_identifiable);
  CHECK(found.advice.static_log2 == 15);
}

}  // namespace test_overflow_cause
