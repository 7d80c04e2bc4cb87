// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/format_fit.hpp"

#include <cmath>

#include "analyzers/fit_judge.hpp"
#include "analyzers/fits.hpp"
#include "catch.hpp"
#include "halfscope/number/convert.hpp"

namespace test_table_noise {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

TEST_CASE("from tables alone the noise is an estimate with true bounds", "[oracle]") {
  const TempFolder folder;
  const bool flush = GENERATE(false, true);
  const double deviation = GENERATE(1.0, 4.0);
  const double scale = GENERATE(1.0, 48.0);
  Values values = gradients(4000, 8, -14, deviation);
  Values recorded = values;
  for (float& x : recorded) x = static_cast<float>(x * scale);
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/w", 0, recorded, scale));
  }
  const underflow::TensorFindings t = fitted(folder / "run", {.flush = flush});
  CHECK(t.whole->whole_steps.empty());
  CHECK(t.whole->mx_fits.empty());
  CHECK_FALSE(t.sums->has_value());
  for (const std::string_view format : formats::kFitFormats) {
    const underflow::FormatFit& fit = fit_in(t, format);
    CAPTURE(format, flush, deviation, scale);
    REQUIRE_FALSE(fit.noise_at_best->exact);
    // 48 * x was rounded to binary32: far below the bounds' width, but not for exact formats.
    const double db = judge(widen(values), format, *fit.best_log2, flush).db();
    CHECK(fit.noise_at_best->low_db <= db);
    CHECK(fit.noise_at_best->high_db >= db);
    // With many binades, a few large values make all of the sums.
    CHECK(std::abs(fit.noise_at_best->db - db) < (deviation == 1 ? 1.0 : 2.0));
  }
}

TEST_CASE("bounds from tables hold at their worst, and are of use at their best", "[oracle]") {
  const TempFolder folder;
  const auto recorded = [&](const Values& values, bool flush) {
    std::filesystem::remove_all(folder / "run");
    {
      log::RunLogWriter writer(folder / "run", {});
      writer.write(record_of("weight_grad/w", 0, values));
    }
    return fitted(folder / "run", {.flush = flush});
  };
  SECTION("all values half an ulp away from a number") {
    Values values(1000, 1.0625f);  // E4M3: 1, 1.125
    values.insert(values.end(), {1.03f, 1.1f});
    const underflow::FormatFit fit = fit_in(recorded(values, false), "e4m3");
    const double db = judge(widen(values), "e4m3", *fit.best_log2).db();
    CHECK(fit.noise_at_best->low_db <= db);
    CHECK(fit.noise_at_best->low_db > db - 1);
  }
  SECTION("one value, which the table knows exactly") {
    for (const float x : {1.0625f, 1.01f, 1.3f, 0x1.fp-20f}) {
      const underflow::FormatFit fit = fit_in(recorded({x}, false), "e4m3");
      const double db = judge({static_cast<double>(x)}, "e4m3", *fit.best_log2).db();
      CHECK(fit.noise_at_best->db == Approx(db).epsilon(1e-9));
      CHECK(fit.noise_at_best->high_db - fit.noise_at_best->low_db < 1e-8);
    }
  }
  SECTION("flushed subnormals are noise, whole") {
    const Values values = {1.5f, 0x1.8p-30f, 0x1.9p-30f};
    const underflow::FormatFit fit = fit_in(recorded(values, true), "e5m2");
    const double db = judge(widen(values), "e5m2", *fit.best_log2, true).db();
    CHECK(fit.noise_at_best->low_db <= db);
    CHECK(fit.noise_at_best->high_db >= db);
    CHECK(fit.noise_at_best->high_db < db + 3);
  }
}

TEST_CASE("tables know where nothing is rounded", "[table]") {
  const TempFolder folder;
  Values values = gradients(2000, 9, -5, 1);
  for (float& x : values) {
    x = static_cast<float>(to_double(kBinary16, from_float(kBinary16, x).bits));
  }
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record_of("weight_grad/w", 0, values));
  }
  const underflow::TensorFindings t = fitted(folder / "run");
  CHECK(std::isinf(fit_in(t, "binary16").noise_at_best->low_db));
  CHECK(std::isinf(fit_in(t, "tf32").noise_at_best->low_db));
  CHECK(std::isfinite(fit_in(t, "bfloat16").noise_at_best->db));
}

}  // namespace test_table_noise
