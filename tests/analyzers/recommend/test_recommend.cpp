// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/parts.hpp"

#include <cmath>

#include "analyzers/logs.hpp"
#include "catch.hpp"
#include "halfscope/number/convert.hpp"

namespace test_recommend {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

recommend::Recommendation recommend_for(const std::vector<std::pair<std::string, Values>>& tensors,
                                        const underflow::RecommendOptions& options = {},
                                        double recorded = 1.0) {
  const TempFolder folder;
  frames::Selection selection;
  if (recorded != 1.0) selection.recorded_scale = recorded;
  return recommend::static_scale(
      {underflow::analyze({write_tensors(folder, tensors)}, {}, selection), {}, options});
}

TEST_CASE("the highest scale leaves the headroom asked for", "[table]") {
  struct Row {
    const char* what;
    float largest;
    int headroom;
    int log2_scale;
  };
  const Row row = GENERATE(values<Row>({
      {"1 * 2^14 * 2 < 65520 < 1 * 2^15 * 2", 1.0f, 1, 14},
      {"no headroom", 1.0f, 0, 15},
      {"just below the boundary's significand", 1.9995116f, 1, 14},
      {"at it: 65520 = 1.99951171875 * 2^15 overflows", 1.99951171875f, 1, 13},
      {"65504 itself", 65504.0f, 0, 0},
      {"beyond binary16: a scale below one", 65520.0f, 0, -1},
      {"far beyond", 0x1p60f, 1, -46},
      {"tiny: at most 2^40", 0x1p-60f, 1, 40},
  }));
  CAPTURE(row.what);
  const recommend::Recommendation r =
      recommend_for({{"weight_grad/w", {row.largest, row.largest / 4}}}, {row.headroom, 1.0});
  CHECK(r.static_log2 == row.log2_scale);
  CHECK(r.limited_by->max_abs == row.largest);
}

TEST_CASE("highest and lowest agree with rounding at every scale", "[oracle]") {
  Values values;
  for (int i = 0; i < 4000; ++i) values.push_back(static_cast<float>(std::exp2(-30 + 0.004 * i)));
  const recommend::Recommendation r = recommend_for({{"weight_grad/w", values}}, {0, 0.01});
  int highest = -100, lowest = 100;
  for (int k = -24; k <= 40; ++k) {
    int flushed = 0, overflow = 0;
    for (const float x : values) {
      const std::uint64_t bits = from_double(kBinary16, std::ldexp(double{x}, k)).bits;
      flushed += bits == 0;
      overflow += bits == kBinary16.infinity();
    }
    if (overflow == 0) highest = k;
    if (flushed <= 40) lowest = std::min(lowest, k);
  }
  CHECK(r.highest_log2 == highest);
  CHECK(r.lowest_log2 == lowest);
}

TEST_CASE("the tensor and step with the largest gradient limit the scale", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/a", 0, {0.5f}));
    writer.write(record_of("activation_grad/b", 4, {8.0f}));
    writer.write(record_of("weight/w", 4, {500.0f}));  // not counted
    writer.write(record_of("weight_grad/a", 9, {2.0f}));
  }
  const recommend::Recommendation r =
      recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}});
  CHECK(r.limited_by->name == "activation_grad/b");
  CHECK(r.limited_by->step == 4);
  CHECK(r.static_log2 == 11);
  CHECK(r.headroom_bits == Approx(std::log2(65520.0 / 8 / 2048)));
}

TEST_CASE("when no scale serves, the highest stays and the tensors lost are named", "[table]") {
  const recommend::Recommendation r =
      recommend_for({{"weight_grad/wide", {16384.0f, 0x1p-40f}}, {"weight_grad/fine", {1.0f}}});
  CHECK(r.static_log2 == 0);
  CHECK(*r.lowest_log2 > *r.highest_log2);
  CHECK(r.above_target == std::vector<std::string>{"weight_grad/wide"});
  CHECK(r.misses_target());
}

TEST_CASE("reasons for no recommendation", "[table]") {
  CHECK(recommend_for({{"activation/a", {1.0f}}}).no_scale == recommend::NoScale::no_gradients);
  CHECK(recommend_for({{"activation/a", {1.0f}}}).roles_found ==
        std::vector<std::string>{"activation"});
  CHECK(recommend_for({{"weight_grad/w", {0.0f, -0.0f}}}).no_scale == recommend::NoScale::all_zero);
  CHECK(recommend_for({{"weight_grad/w", {NAN, INFINITY}}}).no_scale ==
        recommend::NoScale::no_finite_values);
  CHECK_FALSE(recommend_for({{"weight_grad/w", {NAN}}}).static_log2);
}

TEST_CASE("no scale is needed where nothing underflows, a wide format wants none", "[table]") {
  CHECK(recommend_for({{"weight_grad/w", {1.0f, 0x1p-10f}}}).none_needed);
  CHECK_FALSE(recommend_for({{"weight_grad/w", {1.0f, 0x1p-30f}}}).none_needed);
  CHECK_FALSE(recommend_for({{"weight_grad/w", {65520.0f}}}).none_needed);
  const TempFolder folder;
  const auto path = write_tensors(folder, {{"weight_grad/w", {1.0f, 0x1p-30f}}});
  const recommend::Recommendation wide =
      recommend::recommend({underflow::analyze({path}, {"bfloat16", kBfloat16}, {}), {}, {}});
  CHECK(wide.none_needed);
  CHECK(wide.static_log2 == 0);
  CHECK(wide.highest_log2 == underflow::kLastLog2Scale);
}

TEST_CASE("who names roles does not get the others guessed", "[table]") {
  const TempFolder folder;
  const auto path = write_tensors(folder, {{"w.grad", {0.5f}}, {"w", {8.0f}}});
  frames::Selection selection;
  CHECK(
      recommend::recommend({underflow::analyze({path}, {}, selection), {}, {}}).limited_by->name ==
      "w");
  selection.roles = {{"*.grad", log::Role::weight_grad}};
  const underflow::Analysis analysis = underflow::analyze({path}, {}, selection);
  CHECK(recommend::recommend({analysis, {}, {}}).limited_by->name == "w.grad");
  for (const underflow::TensorFindings& t : analysis.logs[0].tensors) {
    CHECK((t.role_source == frames::RoleSource::none) == (t.name == "w"));
  }
}

TEST_CASE("steps with NaN or infinity are listed", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/a", 0, {0.5f}));
    writer.write(record_of("weight_grad/a", 3, {0.5f, NAN}));
    writer.write(record_of("activation/x", 5, {INFINITY}));  // no gradient
    writer.write(record_of("weight_grad/a", 8, {INFINITY}));
  }
  const recommend::Recommendation r =
      recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}});
  CHECK(r.nonfinite_steps == std::vector<std::int64_t>{3, 8});
  CHECK(r.static_log2 == 15);  // binary32 infinities say nothing about magnitude
}

TEST_CASE("binary16 data is censored: zeros and infinities become bounds", "[table]") {
  const TempFolder folder;
  log::TensorRecord record =
      record_of("weight_grad/a", 2, {0.0f, 0.0f, 0x1p-24f, 1.0f, INFINITY}, 1024.0);
  record.computed_dtype = Dtype::f16;
  { log::RunLogWriter(folder / "run", {}).write(record); }
  const recommend::Recommendation r =
      recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}});
  CHECK(r.limited_by->censored);
  CHECK(r.limited_by->max_abs == 65520.0 / 1024);
  CHECK(r.static_log2 == 8);  // 65520 / 1024 * 2^(k + 1) < 65520
  CHECK(r.underflow_not_identifiable);
  CHECK_FALSE(r.lowest_log2);
  CHECK(r.flushed_at_1.count == Interval(1, 3));
  CHECK(r.flushed_at_1.of == Interval(2, 4));
  CHECK(r.flushed_at_1.low() == 0.5);    // one of the two nonzero ones
  CHECK(r.flushed_at_1.high() == 0.75);  // three of four
}

TEST_CASE("an infinity does not hide a larger finite magnitude", "[table]") {
  const TempFolder folder;
  log::TensorRecord record = record_of("weight_grad/a", 0, {1e6f, INFINITY});
  record.computed_dtype = Dtype::f16;
  { log::RunLogWriter(folder / "run", {}).write(record); }
  // 1e6 is no binary16 value: it was computed at a scale that is not known, and so was the
  // infinity.
  CHECK(recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}}).no_scale ==
        recommend::NoScale::scale_unknown);
  log::TensorRecord scaled = record_of("weight_grad/a", 0, {1e6f, INFINITY}, 2.0);
  scaled.computed_dtype = Dtype::f16;
  { log::RunLogWriter(folder / "scaled", {}).write(scaled); }
  const recommend::Recommendation r =
      recommend::recommend({underflow::analyze({folder / "scaled"}, {}, {}), {}, {}});
  CHECK(r.limited_by->max_abs == 5e5);
  CHECK(r.static_log2 == -4);
}

TEST_CASE("an infinity divided by a scale stands for 65520 over it", "[table]") {
  const TempFolder folder;
  log::TensorRecord record =
      record_of("weight_grad/a", 3, {0x1.004p-16f, 0x1.8p-15f, INFINITY});  // FP16 / 65536
  record.computed_dtype = Dtype::f16;
  {
    log::RunLogWriter writer(folder / "run", {});
    log::StepScalars scalars;
    scalars.step = 3;
    scalars.loss_scale = 65536.0;
    writer.write(scalars);
    writer.write(record);
  }
  const recommend::Recommendation r =
      recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}});
  CHECK(r.limited_by->censored);
  CHECK(r.limited_by->max_abs == 65520.0 / 65536);
  CHECK(r.static_log2 == 14);
}

TEST_CASE("the scalars of every step limit the scale, also between recorded steps", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    for (const int step : {0, 1, 2, 3}) {
      log::StepScalars scalars;
      scalars.step = step;
      scalars.max_abs_weight_grad = step == 2 ? 100.0 : 1.0;
      scalars.max_abs_activation_grad = step == 3 ? INFINITY : 0.5;
      writer.write(scalars);
    }
    writer.write(record_of("weight_grad/a", 0, {1.0f}));
  }
  const recommend::Recommendation r =
      recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}});
  CHECK(r.static_log2 == 8);
  CHECK(r.limited_by->name == "weight_grad");
  CHECK(r.limited_by->step == 2);
  CHECK(r.limited_by->from_scalars);
  CHECK(r.nonfinite_steps == std::vector<std::int64_t>{3});
  frames::Selection before;
  before.end_step = 2;
  const recommend::Recommendation early =
      recommend::recommend({underflow::analyze({folder / "run"}, {}, before), {}, {}});
  CHECK(early.static_log2 == 14);
  CHECK(early.limited_by->name == "weight_grad/a");
}

TEST_CASE("where steps differ in provenance, the coarsest holds", "[table]") {
  for (const bool half_first : {true, false}) {
    const TempFolder folder;
    {
      log::RunLogWriter writer(folder / "run", {});
      log::TensorRecord half =
          record_of("weight_grad/a", half_first ? 0 : 1, {1.0f, 0.0f, INFINITY});
      half.computed_dtype = Dtype::f16;
      log::TensorRecord wide = record_of("weight_grad/a", half_first ? 1 : 0, {1.0f});
      wide.computed_dtype = Dtype::f32;
      writer.write(half_first ? half : wide);
      writer.write(half_first ? wide : half);
    }
    const recommend::Recommendation r =
        recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}});
    CHECK(r.underflow_not_identifiable);
    CHECK(r.limited_by->censored);
    CHECK(r.static_log2 == -2);
  }
}

TEST_CASE("a recorded scale that is no power of two is divided out exactly", "[table]") {
  // 131040 / 3 is the largest magnitude; at 2^0 it is below 65520, at 2^1 above.
  CHECK(recommend_for({{"weight_grad/w", {131040.0f}}}, {0, 1.0}, 3.0).static_log2 == 0);
  CHECK(recommend_for({{"weight_grad/w", {196560.0f}}}, {0, 1.0}, 3.0).static_log2 == -1);
  CHECK(recommend_for({{"weight_grad/w", {std::nextafter(196560.0f, 0.0f)}}}, {0, 1.0}, 3.0)
            .static_log2 == 0);
}

TEST_CASE("overflow of activations and weights is found, and no scale is said to cure it",
          "[table]") {
  const recommend::Recommendation r = recommend_for(
      {{"weight_grad/w", {1.0f}}, {"activation/x", {70000.0f}}, {"weight/w", {65504.0f}}});
  CHECK(r.overflow_without_cure == std::vector<std::string>{"activation/x"});
  CHECK(r.static_log2 == 14);
  const TempFolder folder;
  log::TensorRecord half = record_of("activation/h", 0, {1.0f, INFINITY});
  half.computed_dtype = Dtype::f16;
  { log::RunLogWriter(folder / "run", {}).write(half); }
  CHECK(recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}})
            .overflow_without_cure == std::vector<std::string>{"activation/h"});
}

TEST_CASE("a loss held in FP16 limits the scale, known by scalars alone", "[table]") {
  const auto advice_of = [](std::optional<Dtype> loss_dtype, double loss) {
    const TempFolder folder;
    {
      log::Manifest manifest;
      manifest.loss_dtype = loss_dtype;
      log::RunLogWriter writer(folder / "run", manifest);
      for (const int step : {0, 1, 2}) {
        log::StepScalars scalars;
        scalars.step = step;
        scalars.loss = step == 1 ? loss : 2.0;
        scalars.loss_scale = 1024.0;
        writer.write(scalars);
      }
      log::TensorRecord record = record_of("weight_grad/a", 0, {1.0f}, 1024.0);
      record.computed_dtype = Dtype::f16;
      writer.write(record);
    }
    return recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}});
  };
  for (const double loss : {100.0, -100.0}) {  // 100 * 2^8 * 2 < 65520
    const recommend::Recommendation half = advice_of(Dtype::f16, loss);
    CHECK(half.static_log2 == 8);
    CHECK(half.limited_by->name == "loss");
    CHECK(half.limited_by->step == 1);
    CHECK(half.limited_by->max_abs == 100.0);
    CHECK(half.limited_by->from_scalars);
  }
  CHECK(advice_of(Dtype::f32, 100.0).static_log2 == 24);
  CHECK(advice_of({}, 100.0).static_log2 == 24);
  // It is recorded before the scale multiplies it: an infinite one is no scale's doing.
  const recommend::Recommendation infinite = advice_of(Dtype::f16, INFINITY);
  CHECK(infinite.static_log2 == 13);  // of the loss of 2
  CHECK(infinite.nonfinite_steps == std::vector<std::int64_t>{1});
  CHECK_FALSE(infinite.limited_by->censored);
}

TEST_CASE("a loss scale that training cannot apply is refused", "[table]") {
  for (const double scale : {5e-324, 1e-40, 1e39}) {
    CAPTURE(scale);
    const TempFolder folder;
    {
      log::TensorRecord record = record_of("weight_grad/a", 0, {1.0f});
      record.state = log::ScaleState::scaled;
      record.scale = scale;
      log::RunLogWriter(folder / "run", {}).write(record);
    }
    CHECK_THROWS_WITH(
        underflow::analyze({folder / "run"}, {}, {}),
        Catch::Contains("'weight_grad/a', step 0") && Catch::Contains("--recorded-scale"));
  }
}

}  // namespace test_recommend
