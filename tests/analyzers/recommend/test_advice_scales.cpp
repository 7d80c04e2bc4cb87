// SPDX-License-Identifier: Apache-2.0
// Evidence by scale, and dynamic scaling's settings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/logs.hpp"
#include "analyzers/recommend/parts.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/study.hpp"
#include "catch.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/random.hpp"

namespace test_advice_scales {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

/// A run log whose steps have one gradient tensor each.
std::filesystem::path write_steps(const TempFolder& folder, const std::vector<Values>& steps) {
  log::RunLogWriter writer(folder / "run", {});
  std::int64_t step = 0;
  for (const Values& values : steps) writer.write(record_of("weight_grad/w", step++, values));
  return folder / "run";
}

/// A run log of scalars alone, but for one table.
std::filesystem::path write_peaks(const std::filesystem::path& run,
                                  const std::vector<double>& peaks) {
  log::RunLogWriter writer(run, {});
  writer.write(record_of("weight_grad/w", 0, {static_cast<float>(peaks.front())}));
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    log::StepScalars scalars;
    scalars.step = static_cast<std::int64_t>(i);
    scalars.max_abs_weight_grad = peaks[i];
    writer.write(scalars);
  }
  return run;
}

recommend::Recommendation completed(const std::filesystem::path& log,
                                    const underflow::Target& target = {}) {
  return study(analyze({log}, target, {}, {.series = true}, {}), {}, {}).advice;
}

std::vector<int> highest_of(const recommend::LogMaxima& log) {
  std::vector<int> all;
  for (const recommend::StepMaximum& step : log.steps) all.push_back(step.highest_log2);
  return all;
}

std::uint64_t bits_of(double x) { return from_double(kBinary16, x).bits; }

TEST_CASE("evidence by scale is what rounding says", "[oracle]") {
  std::vector<Values> steps;
  for (int i = 0; i < 12; ++i) {
    Values values;
    for (int j = 0; j < 200; ++j) {
      values.push_back(static_cast<float>(std::exp2(-30 + 0.11 * j + 0.25 * i)));
    }
    steps.push_back(values);
  }
  const TempFolder folder;
  const recommend::Recommendation advice = completed(write_steps(folder, steps));
  REQUIRE(advice.scales.size() > 8);
  bool some_overflow = false, some_flushed = false;
  for (const recommend::ScaleEvidence& scale : advice.scales) {
    std::uint64_t flushed = 0, overflow_steps = 0;
    for (const Values& values : steps) {
      bool overflow = false;
      for (const float x : values) {
        const std::uint64_t bits = bits_of(std::ldexp(double{x}, scale.log2_scale));
        flushed += bits == 0;
        overflow = overflow || bits == kBinary16.infinity();
      }
      overflow_steps += overflow;
    }
    CAPTURE(scale.log2_scale);
    CHECK(scale.flushed == Interval(flushed));
    CHECK(scale.of == Interval(2400));
    CHECK(scale.overflow_steps == Interval(overflow_steps));
    CHECK(scale.skip.exceedances == overflow_steps);
    some_overflow = some_overflow || overflow_steps != 0;
    some_flushed = some_flushed || flushed != 0;
  }
  CHECK(some_overflow);
  CHECK(some_flushed);
  REQUIRE(advice.skip);
  CHECK(advice.skip->exceedances == 0);
  CHECK(advice.lost_at_recommended);
}

TEST_CASE("65520 is a limit to the last bit", "[table]") {
  const TempFolder folder;
  const float at = 65520.0f, below = std::nextafter(65520.0f, 0.0f);
  const underflow::Analysis analysis =
      underflow::analyze({write_steps(folder, {{at}, {below}})}, {}, {});
  const auto maxima = recommend::recommend({analysis, {}, {}}).peaks.logs;
  REQUIRE(maxima.size() == 1);
  CHECK(highest_of(maxima[0]) == std::vector<int>{-1, 0});
}

TEST_CASE("steps without tables count by their scalars, the larger of both holds", "[table]") {
  const TempFolder folder;
  const underflow::Analysis analysis =
      underflow::analyze({write_peaks(folder / "run", {1.0, 4.0, 0.0, 0.5})}, {}, {});
  const auto maxima = recommend::recommend({analysis, {}, {}}).peaks.logs;
  REQUIRE(maxima.size() == 1);
  REQUIRE(maxima[0].steps.size() == 3);  // the step of zeros has no magnitude
  CHECK(highest_of(maxima[0]) == std::vector<int>{15, 13, 16});
}

/// The scalars of 61 steps: weight gradients of 1, and activation gradients at every `every`th.
std::filesystem::path write_unread(const std::filesystem::path& run, int every) {
  log::RunLogWriter writer(run, {});
  writer.write(record_of("weight_grad/w", 0, {1.0f}));
  for (int i = 0; i < 61; ++i) {
    log::StepScalars scalars;
    scalars.step = i;
    scalars.max_abs_weight_grad = 1;
    if (i % every == 0) scalars.max_abs_activation_grad = 0.5;
    writer.write(scalars);
  }
  return run;
}

TEST_CASE("steps whose activation gradients were not read bound nothing", "[table]") {
  const TempFolder folder;
  const recommend::Recommendation all = completed(write_unread(folder / "all", 1));
  CHECK(all.unread.lacking == 0);
  CHECK_FALSE(all.overflow_not_identifiable);
  REQUIRE(all.skip);
  CHECK(all.skip->steps == 61);
  const recommend::Recommendation few = completed(write_unread(folder / "few", 20));
  CHECK(few.static_log2 == all.static_log2);
  CHECK(few.unread.lacking == 57);
  CHECK(few.unread.of == 61);
  CHECK(few.unread.role == log::Role::activation_grad);
  CHECK(few.overflow_not_identifiable);
  REQUIRE(few.skip);
  CHECK(few.skip->steps == 4);
  CHECK(few.skip->unread == 57);
  REQUIRE(few.dynamic[0].replayed);
  CHECK(few.dynamic[0].replayed->steps == 4);
  CHECK(few.dynamic[0].replayed->high == few.skip->high);
}

TEST_CASE("infinities: of FP16 data at least 65520 over the scale, of others left out", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    log::TensorRecord record = record_of("weight_grad/w", 0, {1.0f, INFINITY}, 1024.0);
    record.computed_dtype = Dtype::f16;
    writer.write(record);
    writer.write(record_of("weight_grad/v", 1, {1.0f, INFINITY}));
  }
  const auto maxima =
      recommend::recommend({underflow::analyze({folder / "run"}, {}, {}), {}, {}}).peaks.logs;
  REQUIRE(maxima.size() == 1);
  REQUIRE(maxima[0].steps.size() == 1);
  CHECK(maxima[0].left_out == std::vector<std::int64_t>{1});
  CHECK(maxima[0].steps[0].censored);
  CHECK(maxima[0].steps[0].highest_log2 == 9);  // 65520 / 1024 * 2^10 overflows
}

TEST_CASE("steps whose infinities hide the largest magnitude overflow perhaps", "[table]") {
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    for (const int step : {0, 1, 2}) {
      log::TensorRecord record = record_of("weight_grad/w", step, {1.0f}, 1024.0);
      if (step != 0) record = record_of("weight_grad/w", step, {1.0f, INFINITY}, 1024.0);
      record.computed_dtype = Dtype::f16;
      writer.write(record);
    }
  }
  const recommend::Recommendation advice = completed(folder / "run");
  CHECK(advice.overflow_not_identifiable);
  for (const recommend::ScaleEvidence& scale : advice.scales) {
    const std::uint64_t surely = scale.log2_scale > 9 ? 2 : 0;
    CHECK(scale.overflow_steps == Interval(surely, 2));
  }
}

TEST_CASE("NaN of the model is in no chance of overflow", "[table]") {
  std::vector<double> peaks;
  for (std::uint64_t i = 0; i < 200; ++i) {
    peaks.push_back(i < 130 ? std::exp2(random_word(7, i) * 0x1p-32) : NAN);
  }
  const TempFolder folder;
  const recommend::Recommendation advice = completed(write_peaks(folder / "run", peaks));
  CHECK(advice.steps_left_out == 70);
  CHECK(advice.nonfinite_steps.size() == 70);
  REQUIRE(advice.skip);
  CHECK(advice.skip->steps == 130);
  CHECK(advice.skip->probability < 0.01);
  REQUIRE_FALSE(advice.dynamic.empty());
  // NaN of a log that does not say what it computed in: at most 70 of 200, 0.421 by
  // Clopper-Pearson.
  REQUIRE(advice.dynamic[0].replayed);
  CHECK(advice.dynamic[0].replayed->steps == 200);
  CHECK(advice.dynamic[0].replayed->overflowing().high == 70);
  CHECK(advice.dynamic[0].replayed->high == Approx(0.421).margin(1e-3));
}

TEST_CASE("a dynamic scale skips what torch's rule skips, step by step", "[oracle]") {
  std::vector<double> peaks;
  for (std::uint64_t i = 0; i < 16000; ++i) {
    peaks.push_back(std::exp2(4 * random_word(11, i) * 0x1p-32));
  }
  const TempFolder folder;
  const std::filesystem::path run = write_peaks(folder / "run", peaks);
  const recommend::Recommendation advice =  // of two runs: PyTorch's rule at twice the static scale
      study(analyze({run, run}, {}, {}, {.series = true}, {}), {}, {}).advice;
  REQUIRE_FALSE(advice.dynamic.empty());
  REQUIRE(advice.dynamic[0].replayed);
  double scale = advice.dynamic[0].init;
  std::uint64_t clean = 0, skipped = 0;
  for (const double peak : peaks) {
    if (!(peak * scale < 65520)) {
      scale /= 2;
      clean = 0;
      ++skipped;
    } else if (++clean == advice.dynamic[0].growth_interval) {
      scale *= 2;
      clean = 0;
    }
  }
  REQUIRE(skipped > 3);
  CHECK(advice.dynamic[0].replayed->overflowing() == Interval(2 * skipped));
  CHECK(advice.dynamic[0].replayed->steps == 2 * peaks.size());
}

TEST_CASE("a log of one step is replayed, as policies does", "[table]") {
  const TempFolder folder;
  const recommend::Recommendation advice = completed(write_peaks(folder / "run", {1.0}));
  REQUIRE_FALSE(advice.dynamic.empty());
  REQUIRE(advice.dynamic[0].replayed);
  CHECK(advice.dynamic[0].replayed->steps == 1);
}

TEST_CASE("steady gradients: the framework's settings do no harm, and are kept", "[table]") {
  const TempFolder folder;
  const recommend::Recommendation advice =
      completed(write_peaks(folder / "run", std::vector<double>(60, 1.0)));
  REQUIRE_FALSE(advice.dynamic.empty());
  CHECK(advice.dynamic[0].kept);
  CHECK(advice.dynamic[0].init == 0x1p16);  // 2^15 holds: the first of 60 steps is skipped
  CHECK(advice.dynamic[0].growth_interval == 2000);
  REQUIRE(advice.dynamic[0].replayed);
  CHECK(advice.dynamic[0].replayed->overflowing() == Interval(1));
  const recommend::Recommendation brief =
      completed(write_peaks(folder / "brief", std::vector<double>(10, 1.0)));
  REQUIRE_FALSE(brief.dynamic.empty());
  CHECK_FALSE(brief.dynamic[0].kept);      // one of ten is no few
  CHECK(brief.dynamic[0].init == 0x1p14);  // a short run has a binade to spare
  REQUIRE(brief.dynamic[0].replayed);
  CHECK(brief.dynamic[0].replayed->overflowing() == Interval(0));
  CHECK(brief.dynamic[0].replayed->low == 0);
  CHECK(brief.dynamic[0].replayed->high == Approx(1 - std::pow(0.05, 1.0 / 10)));
}

/// Of logs whose largest gradients grow or shrink by up to 8 binades.
Study random_study(const TempFolder& folder, unsigned seed, int logs, bool with_policies) {
  std::vector<std::filesystem::path> paths;
  for (int i = 0; i < logs; ++i) {
    std::vector<double> peaks;
    const double drift = 16 * (random_word(seed, 0) * 0x1p-32 - 0.5) / 40;
    for (std::uint64_t step = 0; step < 40; ++step) {
      peaks.push_back(std::exp2(drift * static_cast<double>(step) + 2 * i +
                                3 * random_word(seed, step + 1) * 0x1p-32));
    }
    paths.push_back(write_peaks(folder / fmt::format("{}-{}", seed, i), peaks));
  }
  std::optional<replay::PolicyOptions> policies;
  if (with_policies) policies.emplace();
  return study(analyze(paths, {}, {}, {.series = true}, {}), {}, {}, policies);
}

TEST_CASE("one run: what is recommended is what its replay found best", "[property]") {
  const TempFolder folder;
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const Study shown = random_study(folder, 2 * seed, 1, true);
    const Study alone = random_study(folder, 2 * seed + 1, 1, false);
    CHECK(alone.policies.empty());
    for (const Study* one : {&shown, &alone}) {
      REQUIRE_FALSE(one->advice.dynamic.empty());
      CHECK(one->advice.dynamic[0].tried > 0);
      CHECK(one->advice.dynamic[0].replayed->steps == 40);
    }
    REQUIRE(shown.policies.size() == 1);
    const replay::PolicyStudy& replayed = shown.policies[0];
    CHECK(replayed.fixed->scale_at(0) == std::exp2(*shown.advice.static_log2));
    CHECK(replayed.tuned->initial == shown.advice.dynamic[0].init);
    CHECK(replayed.tuned->interval == shown.advice.dynamic[0].growth_interval);
    CHECK(policy::scale_of(replayed.tuned->trace.policy) == shown.advice.dynamic[0].init);
    CHECK(policy::number_of(replayed.tuned->trace.policy, "growth_interval") ==
          static_cast<double>(shown.advice.dynamic[0].growth_interval));
  }
}

TEST_CASE("several runs: twice the static scale, which is replayed over each", "[property]") {
  const TempFolder folder;
  const Study found = random_study(folder, 100, 2, true);
  const recommend::Recommendation& advice = found.advice;
  REQUIRE_FALSE(advice.dynamic.empty());
  CHECK(advice.dynamic[0].tried == 0);
  CHECK(advice.dynamic[0].init == std::exp2(*advice.static_log2 + 1));
  CHECK(advice.dynamic[0].growth_interval == 2000);
  CHECK(advice.dynamic[0].replayed->steps == 80);
  REQUIRE(found.policies.size() == 2);
  for (const replay::PolicyStudy& replayed : found.policies) {
    CHECK(replayed.fixed->scale_at(0) == std::exp2(*advice.static_log2));
  }
}

TEST_CASE("without a static scale there is no evidence and no dynamic advice", "[table]") {
  const TempFolder folder;
  const recommend::Recommendation advice = completed(write_steps(folder, {{0.0f}}));
  CHECK(advice.scales.empty());
  CHECK(advice.dynamic.empty());
  CHECK_FALSE(advice.skip);
  CHECK_FALSE(advice.ranks);
}

}  // namespace test_advice_scales
