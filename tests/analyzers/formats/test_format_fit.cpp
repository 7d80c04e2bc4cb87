// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/format_fit.hpp"

#include <cmath>
#include <limits>
#include <random>

#include "analyzers/fit_judge.hpp"
#include "analyzers/fits.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"
#include "halfscope/number/convert.hpp"

namespace test_format_fit {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

Classes at_1(const underflow::TensorFindings& t, std::string_view format, bool saturating = false) {
  return t.classes_at(fit_in(t, format, saturating), Subnormals::keep, 0);
}

void check_fit(const underflow::TensorFindings& t, const std::vector<double>& values,
               std::string_view format, bool flush) {
  CAPTURE(format, flush);
  const underflow::FormatFit& fit = fit_in(t, format);
  const Subnormals subnormals = flush ? Subnormals::flush_result : Subnormals::keep;
  REQUIRE(t.classes_at(fit, subnormals, 0) == judge(values, format, 0, flush).classes);
  REQUIRE(fit.best_log2);
  const bool is_most = *fit.best_log2 == formats::kLastOwnLog2;
  REQUIRE((is_most || judge(values, format, *fit.best_log2 + 1).classes.overflow.low != 0));
  const Judged best = judge(values, format, *fit.best_log2, flush);
  REQUIRE(best.classes.overflow == Interval(0));
  REQUIRE(t.classes_at(fit, subnormals, *fit.best_log2) == best.classes);
  REQUIRE(fit.noise_at_best);
  REQUIRE(fit.noise_at_best->exact);
  REQUIRE(fit.noise_at_best->low_db <= best.db());
  REQUIRE(fit.noise_at_best->high_db >= best.db());
  REQUIRE(fit.noise_at_best->high_db - fit.noise_at_best->low_db < 1e-10);
}

TEST_CASE("fits equal rounding every value by the oracle", "[oracle]") {
  const TempFolder folder;
  Values values = gradients(700, 1);
  for (const float x : {0.0f, -0.0f, 0x1p-149f, 0x1p-130f, 0x1.fffffep-127f, NAN, INFINITY}) {
    values.push_back(x);
  }
  const bool flush = GENERATE(false, true);
  const underflow::TensorFindings t = fitted(write_one(folder, values), {.flush = flush});
  CHECK(t.whole->fits.size() == 7);
  CHECK(t.whole->whole_steps == std::vector<std::int64_t>{0});
  for (const std::string_view format : formats::kFitFormats) {
    check_fit(t, widen(values), format, flush);
  }
}

TEST_CASE("fits of values that must be made smaller, or were recorded scaled", "[oracle]") {
  const TempFolder folder;
  const double scale = GENERATE(1.0, 1024.0);
  Values values = gradients(500, 2, 40, 20);            // many above 65504
  values.push_back(std::numeric_limits<float>::max());  // not even a bfloat16 number
  values.push_back(0x1.01p-133f);                       // halved, no binary32 number
  values.push_back(0x1.018p-126f);
  const underflow::TensorFindings t = fitted(write_one(folder, values), {.recorded_scale = scale});
  std::vector<double> unscaled = widen(values);
  for (double& x : unscaled) x /= scale;
  for (const std::string_view format : formats::kFitFormats) check_fit(t, unscaled, format, false);
}

TEST_CASE("fits of a binary64 source: rounded once, not by way of binary32", "[oracle]") {
  const TempFolder folder;
  std::vector<double> values = widen(gradients(300, 3));
  std::mt19937_64 random(1);
  for (double& x : values) x *= 1 + static_cast<double>(random() >> 11) * 0x1p-53;
  // Just above a tie of each format: binary32 has only the tie.
  for (const double half : {0x1p-11, 0x1p-8, 0x1p-4, 0x1p-3}) values.push_back(1 + half + 0x1p-50);
  const underflow::TensorFindings t = fitted(write_one(folder, values));
  for (const std::string_view format : formats::kFitFormats) check_fit(t, values, format, false);
}

TEST_CASE("noise of values far below every format: all of it is lost, and that is 0 dB",
          "[oracle]") {
  const TempFolder folder;
  const double tiny = GENERATE(1e-200, 1e-170, 0x1p-1060);
  const underflow::TensorFindings t =
      fitted(write_one<double>(folder, {tiny, -3 * tiny, 0.5 * tiny}));
  for (const std::string_view format : formats::kFitFormats) {
    CAPTURE(format, tiny);
    REQUIRE(fit_in(t, format).noise_at_best);
    CHECK(fit_in(t, format).noise_at_best->db == 0);
  }
  for (const underflow::RecipeFit& fit : t.whole->mx_fits) {
    CHECK(fit.flushed_to_zero == 3);  // in binary32 already, where recipes begin
    CHECK(fit.values == 3);
    CHECK_FALSE(fit.noise);
  }
}

TEST_CASE("the noise never grows up to the best scale", "[oracle]") {
  const std::vector<double> values = widen(gradients(400, 4, -9, 3));
  const TempFolder folder;
  const Values narrow(values.begin(), values.end());
  const underflow::TensorFindings t = fitted(write_one(folder, narrow));
  for (const std::string_view format : {"e4m3", "e5m2", "binary16"}) {
    const int best = *fit_in(t, format).best_log2;
    double last = -1e9;
    for (int k = best - 12; k <= best; ++k) {
      const Judged j = judge(values, format, k);
      REQUIRE(j.db() >= last - 1e-12);
      last = j.db();
    }
  }
}

TEST_CASE("E4M3 ends at 464, which still rounds down", "[table]") {
  const TempFolder folder;
  const underflow::FormatFit tie = fit_in(fitted(write_one<float>(folder, {464.0f, 1.0f})), "e4m3");
  CHECK(tie.fits_at_1);
  CHECK(tie.best_log2 == 0);
  const underflow::TensorFindings above = fitted(write_one<float>(folder, {0x1.d00002p8f, 1.0f}));
  CHECK_FALSE(fit_in(above, "e4m3").fits_at_1);
  CHECK(at_1(above, "e4m3").overflow == Interval(1));
  CHECK(fit_in(above, "e4m3").best_log2 == -1);
}

TEST_CASE("the best scale ends right below overflow", "[table]") {
  const TempFolder folder;
  CHECK(fit_in(fitted(write_one<float>(folder, {65520.0f})), "binary16").best_log2 == -1);
  CHECK(fit_in(fitted(write_one<float>(folder, {0x1.ffdffep15f})), "binary16").best_log2 == 0);
}

TEST_CASE("a saturating cast may clamp as many values as it may flush", "[table]") {
  const TempFolder folder;
  Values values(1999, 1.0f);
  values.push_back(1e6f);
  const underflow::TensorFindings t = fitted(write_one(folder, values));
  CHECK_FALSE(fit_in(t, "e5m2").fits_at_1);
  CHECK(fit_in(t, "e5m2", true).fits_at_1);  // 1 of 2000 is below 0.1 %
  CHECK(at_1(t, "e5m2", true).overflow == Interval(1));
  values.insert(values.end(), 2, 1e6f);
  CHECK_FALSE(fit_in(fitted(write_one(folder, values)), "e5m2", true).fits_at_1);
}

TEST_CASE("whole tensors decide at scale 1 as they do at the best one", "[oracle]") {
  const TempFolder folder;
  std::mt19937 random(5);
  int fitting = 0, others = 0;
  for (int i = 0; i < 60; ++i) {
    // Nearly all values are one, about where E5M2's error is largest: no even spread, as a
    // histogram suggests. The first has 19.10 dB.
    const float more = std::ldexp(static_cast<float>(random() % 4096), -17);
    Values values(1000, i == 0 ? 0.56245f : 0.55f + more);
    values[0] = 1.0f;
    const underflow::TensorFindings t = fitted(write_one(folder, values));
    const double db = judge(widen(values), "e5m2", 0).db();
    const bool enough = db >= formats::kEnoughDb;
    if (i == 0) CHECK(db == Approx(19.10).margin(0.01));
    CHECK(fit_in(t, "e5m2").fits_at_1 == enough);
    CHECK(fit_in(t, "e5m2", true).fits_at_1);  // few are clamped or flushed
    (enough ? fitting : others) += 1;
  }
  CHECK(std::min(fitting, others) > 10);
}

TEST_CASE("whole tensors without a finite value decide nothing at scale 1", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/w", 0, {1.0f, 0.75f}));
    writer.write(record_of("weight_grad/w", 1, {0.0f, INFINITY}));
    const Values values = {0.0f, INFINITY};
    const auto* data = reinterpret_cast<const std::byte*>(values.data());
    writer.write_sample(1, {{"weight_grad/w", {2}, {Dtype::f32, data, 2}}});
  }
  const underflow::TensorFindings t = fitted(folder / "run");
  CHECK(t.whole->whole_steps == std::vector<std::int64_t>{1});
  CHECK(fit_in(t, "e5m2").fits_at_1);
}

TEST_CASE("the lower limits of bfloat16 and TF32 lie among binary32's subnormals", "[table]") {
  const TempFolder folder;
  const underflow::TensorFindings t = fitted(write_one<float>(
      folder, {0x1p-134f, 0x1.8p-134f, 0x1p-133f, 0x1p-137f, 0x1.8p-137f, 0x1p-136f, 1.0f}));
  CHECK(at_1(t, "bfloat16") == Classes{4, 2, 1, 0});
  CHECK(at_1(t, "tf32") == Classes{1, 5, 1, 0});
}

TEST_CASE("exact numbers of a format have no noise", "[table]") {
  const TempFolder folder;
  const underflow::TensorFindings t =
      fitted(write_one<float>(folder, {1.0f, 1.5f, -448.0f, 0x1p-9f}));
  CHECK(std::isinf(fit_in(t, "e4m3").noise_at_best->db));
  CHECK(fit_in(t, "e4m3").noise_at_best->exact);
  CHECK(std::isinf(fit_in(t, "binary16").noise_at_best->low_db));
}

TEST_CASE("any number of threads gives the same bits", "[table]") {
  const TempFolder folder;
  const auto log = write_one(folder, gradients(300'000, 5), {100, 3000});
  const underflow::TensorFindings one = fitted(log, {.options = {.threads = 1}});
  const underflow::TensorFindings many = fitted(log, {.options = {.threads = 0}});
  for (std::size_t i = 0; i < one.whole->fits.size(); ++i) {
    REQUIRE(one.whole->fits[i].noise_at_best->db == many.whole->fits[i].noise_at_best->db);
  }
  for (std::size_t i = 0; i < one.whole->mx_fits.size(); ++i) {
    REQUIRE(one.whole->mx_fits[i].noise->db == many.whole->mx_fits[i].noise->db);
    REQUIRE(one.whole->mx_fits[i].flushed_to_zero == many.whole->mx_fits[i].flushed_to_zero);
  }
  REQUIRE(*one.sums == *many.sums);
}

TEST_CASE("MX blocks of whole tensors, by the definition", "[oracle]") {
  const TempFolder folder;
  const std::size_t row = GENERATE(1, 3, 32, 40, 75);
  Values values = gradients(row * 12, 6, -20, 6);
  for (std::size_t i = 0; i < row; ++i) values[i] = 0;  // blocks of zeros
  values[2 * row] = 0x1p-140f;                          // near E8M0's least scale
  values[5 * row] = INFINITY;
  values.back() = NAN;
  const underflow::TensorFindings t = fitted(write_one(folder, values, {3, 4, row}));
  REQUIRE(t.whole->mx_fits.size() == formats::kMxRecipes.size());
  for (const underflow::RecipeFit& fit : t.whole->mx_fits) {
    CAPTURE(row, fit.recipe->name);
    const JudgedBlocks j = judge_blocks(widen(values), row, block::name_of(fit.recipe->element));
    REQUIRE(fit.values == j.values);
    REQUIRE(fit.flushed_to_zero == j.flushed);
    REQUIRE(fit.saturated == j.saturated);
    REQUIRE(fit.in_nan_blocks == j.in_nan);
    REQUIRE(fit.noise->exact);
    REQUIRE(fit.noise->low_db <= j.db());
    REQUIRE(fit.noise->high_db >= j.db());
  }
}

TEST_CASE("MX: where elements begin to saturate", "[oracle]") {
  const TempFolder folder;
  Values values;  // one block each: the first magnitudes that round above the largest number
  for (const float x : {464.0f, 0x1.d00002p8f, 61440.0f, 30.0f, 7.75f, 7.0f}) {
    values.insert(values.end(), {x, std::nextafter(x, 0.0f), 1.0f, 0.0f});
  }
  const underflow::TensorFindings t = fitted(write_one(folder, values, {6, 4}));
  for (const underflow::RecipeFit& fit : t.whole->mx_fits) {
    CAPTURE(fit.recipe->name);
    CHECK(fit.saturated ==
          judge_blocks(widen(values), 4, block::name_of(fit.recipe->element)).saturated);
  }
}

TEST_CASE("blocks are of recorded values, with the loss scale in them", "[oracle]") {
  const TempFolder folder;
  const Values values = gradients(320, 7, -125, 6);  // near E8M0's least scale
  const underflow::TensorFindings t = fitted(write_one(folder, values), {.recorded_scale = 4096.0});
  for (const underflow::RecipeFit& fit : t.whole->mx_fits) {
    const JudgedBlocks j = judge_blocks(widen(values), 320, block::name_of(fit.recipe->element));
    REQUIRE(fit.flushed_to_zero == j.flushed);
    REQUIRE(fit.noise->low_db <= j.db());
    REQUIRE(fit.noise->high_db >= j.db());
  }
}

TEST_CASE("the narrowest format that serves", "[table]") {
  const TempFolder folder;
  const auto of = [&](const Values& values) {
    const auto narrow = formats::narrowest(fitted(write_one(folder, values)));
    return narrow ? std::string(narrow->format) + (narrow->needs_scale ? "*" : "") : "none";
  };
  CHECK(of({1.0f, 2.0f, 3.1f}) == "e4m3");
  CHECK(of({0x1p-12f, 100.0f}) == "e4m3");  // what it flushes holds next to nothing
  CHECK(of({1000.0f}) == "e5m2");           // beyond E4M3, and no scale is needed
  CHECK(of({0x1p-30f, 0x1p-29f}) == "e4m3*");
  CHECK(of({0x1p-140f}) == "e5m2*");  // scales end at 2^126
  CHECK(of({0x1p-145f}) == "binary16*");
  CHECK(of({0x1p-149f, 0x1p127f}) == "e4m3*");
  CHECK(of({0.0f, -0.0f}) == "none");
  CHECK(formats::narrowest(fitted(write_one<double>(folder, {1e-300, 1e300})))->format ==
        "binary64");
  CHECK_FALSE(formats::narrowest(underflow::TensorFindings()));
}

TEST_CASE("a fit is judged by its noise, not by how many values become zero", "[oracle]") {
  const TempFolder folder;
  for (const auto& [large, serves] : {std::pair{8, true}, {0, false}}) {
    Values values(1000, 0x1p-26f);  // FP16 makes these zero
    for (int i = 0; i < large; ++i) values.push_back(0x1.2p-16f);
    const underflow::TensorFindings t = fitted(write_one(folder, values));
    const underflow::FormatFit& fit = fit_in(t, "binary16");
    CHECK(fit.fits_at_1 == serves);
    CHECK(fit.fits_at_1 == (judge(widen(values), "binary16", 0).db() >= formats::kEnoughDb));
    CHECK(fit.fits_at_best);
    const How strict{.options = {.sufficient_snr_db = 60}};
    CHECK_FALSE(fit_in(fitted(write_one(folder, values), strict), "binary16").fits_at_1);
  }
}

TEST_CASE("infinities of FP16 hide how large values were: nothing is known to fit", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    log::TensorRecord record = record_of("weight_grad/w", 0, {1.0f, INFINITY});
    record.computed_dtype = Dtype::f16;
    writer.write(record);
  }
  const underflow::TensorFindings t = fitted(folder / "run");
  for (const underflow::FormatFit& fit : t.whole->fits)
    CHECK_FALSE((fit.fits_at_1 || fit.fits_at_best));
  CHECK(formats::narrowest(t)->format == "binary32");
}

TEST_CASE("sums want the whole tensor of every step", "[table]") {
  const TempFolder folder;
  const Values values = gradients(600, 10);
  const TensorView view = halfscope::test::view_of(values);
  for (const bool both : {false, true}) {
    const auto run = folder / (both ? "both" : "one");
    {
      log::RunLogWriter writer(run, {});
      for (const int step : {0, 5}) {
        writer.write(record_of("weight_grad/w", step, values));
        if (step == 0 || both) writer.write_sample(step, {{"weight_grad/w", {600}, view}});
      }
    }
    const underflow::TensorFindings t = fitted(run);
    CHECK(t.sums->has_value() == both);
    CHECK(t.whole->whole_steps.size() == (both ? 2u : 1u));
    CHECK(fit_in(t, "e5m2").noise_at_best->exact);
    underflow::Analysis a = underflow::analyze({run}, {}, {});
    add_whole_steps(a, {}, {.sums = true});
    CHECK(*a.logs[0].tensors[0].sums == *t.sums);
    CHECK(a.logs[0].tensors[0].whole->fits.empty());
  }
}

TEST_CASE("a recorded scale that is no power of two leaves the estimate", "[table]") {
  const TempFolder folder;
  const auto log = write_one(folder, gradients(600, 11));
  const underflow::TensorFindings t = fitted(log, {.recorded_scale = 1000.0});
  CHECK_FALSE(t.sums->has_value());
  CHECK(t.whole->whole_steps.empty());
  CHECK_FALSE(fit_in(t, "e5m2").noise_at_best->exact);
}

TEST_CASE("a log that is given twice is counted twice, not mixed", "[table]") {
  const TempFolder folder;
  const auto log = write_one(folder, gradients(600, 12));
  underflow::Analysis a = underflow::analyze({log, log}, {}, {});
  add_whole_steps(a, {}, {.formats = true});
  REQUIRE(a.tensors().size() == 2);
  for (const underflow::TensorFindings& t : a.tensors()) {
    CHECK(t.whole->whole_steps.size() == 1);
    CHECK(t.sums->has_value());
    CHECK(t.whole->fits[0].noise_at_best->db ==
          a.logs[0].tensors[0].whole->fits[0].noise_at_best->db);
  }
}

TEST_CASE("empty tensors and scalars fit without trouble", "[table]") {
  const TempFolder folder;
  const underflow::TensorFindings empty = fitted(write_one<float>(folder, {}, {0, 7}));
  CHECK(empty.whole->fits.empty());  // nothing is held for a tensor without elements
  CHECK(empty.whole->mx_fits.empty());
  const auto path = folder / "scalar.safetensors";
  const Values one = {3.0f};
  log::write_safetensors(path, {{"loss/l", {}, halfscope::test::view_of(one)}});
  const underflow::TensorFindings scalar = fitted(path);
  CHECK(scalar.whole->mx_fits.at(0).values == 1);
  CHECK(std::isinf(scalar.whole->mx_fits.at(0).noise->db));
}

}  // namespace test_format_fit
