// SPDX-License-Identifier: Apache-2.0
// NaN of gradients that were computed in FP16 bounds the scale as an infinity does, unless
// something else explains it.
#include <cmath>
#include <functional>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/small_run.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"

namespace test_nan_overflow {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

constexpr double kScale = 1024;
constexpr std::int64_t kBad = 3;
constexpr const char* kWeightGrad = "weight_grad/b.weight";

/// Six steps at scale 1024 whose gradients reach 0.5: they alone allow 2^15.
SmallRun six_steps(Dtype computed = Dtype::f16) {
  SmallRun run(computed);
  for (std::int64_t step = 0; step < 6; ++step) run.put_step(step, kScale);
  return run;
}

recommend::Recommendation advice_of(const SmallRun& run) {
  return study(findings_of(run.analyze_at()), {}, {}).advice;
}

struct Row {
  const char* what;
  std::function<void(SmallRun&)> change;
};

void put_nan(SmallRun& run) { run.replace(kWeightGrad, kBad, {NAN, 1.0f}, kScale); }

TEST_CASE("NaN that nothing explains bounds the scale as an infinity does", "[table]") {
  for (const float bad : {INFINITY, NAN}) {
    SmallRun run = six_steps();
    run.replace(kWeightGrad, kBad, {bad, 1.0f}, kScale);
    const recommend::Recommendation advice = advice_of(run);
    CHECK(advice.static_log2 == 8);  // below 2^10, and a binade to spare
    CHECK(advice.overflow_not_identifiable);
    CHECK(advice.steps_left_out == 0);
    CHECK(advice.nonfinite_steps == std::vector<std::int64_t>{kBad});
    REQUIRE(advice.limited_by);
    CHECK(advice.limited_by->censored);
    CHECK(advice.limited_by->name == kWeightGrad);
    CHECK(advice.limited_by->max_abs == 65520 / kScale);
    CHECK(advice.limited_by->nan_at == (std::isnan(bad) ? std::optional(kScale) : std::nullopt));
    if (std::isnan(bad)) CHECK_FALSE(advice.none_needed);
    REQUIRE(advice.skip);
    CHECK(advice.skip->steps == 6);
    CHECK(advice.skip->perhaps == 1);
  }
}

TEST_CASE("an infinity says more than NaN at the same scale", "[table]") {
  SmallRun run = six_steps();
  put_nan(run);
  run.replace("activation_grad/a", 4, {INFINITY}, kScale);
  const recommend::Recommendation advice = advice_of(run);
  CHECK(advice.static_log2 == 8);
  CHECK(advice.limited_by->name == "activation_grad/a");
  CHECK_FALSE(advice.limited_by->nan_at);
}

TEST_CASE("NaN in the scalars of a step without tensors bounds the scale too", "[table]") {
  SmallRun run = six_steps();
  log::StepScalars& s = run.scalars(6);
  s.loss = 2.5;
  s.loss_scale = kScale;
  s.max_abs_weight_grad = NAN;
  const recommend::Recommendation advice = advice_of(run);
  CHECK(advice.static_log2 == 8);
  CHECK(advice.limited_by->nan_at == kScale);
  CHECK(advice.limited_by->from_scalars);
}

TEST_CASE("NaN that something explains bounds no scale", "[table]") {
  const Row row = GENERATE(values<Row>({
      {"a NaN loss", [](SmallRun& run) { run.scalars(kBad).loss = NAN; }},
      {"an infinite loss", [](SmallRun& run) { run.scalars(kBad).loss = INFINITY; }},
      {"a NaN loss, by its tensor", [](SmallRun& run) { run.put("loss/a", kBad, {NAN}); }},
      {"NaN in an activation", [](SmallRun& run) { run.replace("activation/b", kBad, {NAN}); }},
      {"an infinity there", [](SmallRun& run) { run.replace("activation/b", kBad, {INFINITY}); }},
      {"NaN in a weight", [](SmallRun& run) { run.replace("weight/c.weight", kBad, {NAN}); }},
      {"NaN of a wide gradient before it",
       [](SmallRun& run) {
         for (int step = 0; step < 6; ++step) {
           run.put_wide("activation_grad/b", step, {step == kBad ? NAN : 0.5f});
         }
       }},
  }));
  CAPTURE(row.what);
  SmallRun run = six_steps();
  put_nan(run);
  row.change(run);
  const recommend::Recommendation advice = advice_of(run);
  CHECK(advice.static_log2 == 15);
  CHECK_FALSE(advice.overflow_not_identifiable);
  CHECK_FALSE(advice.limited_by->nan_at);
  CHECK(advice.steps_left_out == 1);
}

TEST_CASE("NaN of a wide gradient bounds no scale", "[table]") {
  SmallRun run = six_steps(Dtype::f32);
  run.replace(kWeightGrad, kBad, {NAN, 1.0f}, kScale);
  const recommend::Recommendation advice = advice_of(run);
  CHECK(advice.static_log2 == 15);
  CHECK_FALSE(advice.overflow_not_identifiable);
}

TEST_CASE("NaN that far lower scales did not cure bounds no scale", "[table]") {
  SmallRun run(Dtype::f16);
  run.put_step(0, 0x1p16, 0x1p-10f);
  for (int k = 16; k >= -18; --k) {
    run.put_step(17 - k, std::ldexp(1.0, k), 0x1p-10f);
    run.replace("activation_grad/b", 17 - k, {NAN, 0.0f}, std::ldexp(1.0, k));
  }
  run.put_step(60, 0x1p-19, 0x1p-10f);
  const recommend::Recommendation advice = advice_of(run);
  CHECK(advice.static_log2 == 24);
  CHECK_FALSE(advice.overflow_not_identifiable);
  CHECK(advice.steps_left_out == 35);
  CHECK(advice.nan_in_model);
}

TEST_CASE("NaN at scale 1 that does not last may be an overflow, too", "[table]") {
  SmallRun run(Dtype::f16);
  for (std::int64_t step = 0; step < 6; ++step) run.put_step(step, 1.0);
  run.replace(kWeightGrad, kBad, {NAN, 1.0f});
  const recommend::Recommendation advice = advice_of(run);
  CHECK(advice.static_log2 == -2);
  CHECK(advice.limited_by->nan_at == 1.0);
  CHECK_FALSE(advice.nan_in_model);
}

}  // namespace test_nan_overflow
