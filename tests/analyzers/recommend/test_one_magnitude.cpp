// SPDX-License-Identifier: Apache-2.0
// The recommendation, headroom, step maxima and the series of a replay are of one magnitude: the
// largest gradient of a log, where an infinity computed in FP16 at scale S is 65520 / S or more.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analyzers/recommend/parts.hpp"
#include "analyzers/small_run.hpp"
#include "analyzers/study.hpp"
#include "analyzers/underflow/step_facts.hpp"
#include "catch.hpp"

namespace test_one_magnitude {

using namespace halfscope;
using namespace halfscope::analyzers;

/// Gradients about the end of FP16's range at the scales of their steps, so that some are infinite.
struct RandomRun {
  test::SmallRun run{Dtype::f16};
  std::vector<double> least;  ///< of each step: the largest gradient, unscaled, at the least
  bool censored = false;      ///< of the largest step

  explicit RandomRun(unsigned seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned end) { return random() % end; };
    const auto steps = static_cast<std::int64_t>(4 + below(8));
    for (std::int64_t step = 0; step < steps; ++step) {
      const double scale = std::ldexp(1.0, 8 + static_cast<int>(below(4)));
      add(step, scale, [&] {  // 11 significant bits: FP16 holds what does not overflow exactly
        const double significand = 1 + static_cast<double>(below(1024)) / 1024;
        return std::ldexp(significand, 3 + static_cast<int>(below(5)) - static_cast<int>(seed % 3));
      });
    }
  }

 private:
  template <typename Draw>
  void add(std::int64_t step, double scale, const Draw& draw) {
    run.put_step(step, scale, 0x1p-6f);
    double largest[2] = {0, 0};
    const char* const names[2] = {"activation_grad/b", "weight_grad/b.weight"};
    for (const int i : {0, 1}) {
      const double value = draw();
      const bool infinite = value * scale >= 65520;
      largest[i] = infinite ? INFINITY : value;
      run.replace(names[i], step, {static_cast<float>(infinite ? INFINITY : value * scale)}, scale);
    }
    log::StepScalars& s = run.scalars(step);
    s.max_abs_activation_grad = largest[0];
    s.max_abs_weight_grad = largest[1];
    s.found_inf = !std::isfinite(largest[0]) || !std::isfinite(largest[1]);
    const double all = std::max(largest[0], largest[1]);
    const double at_least = std::isfinite(all) ? all : 65520 / scale;
    if (least.empty() || at_least > *std::ranges::max_element(least)) {
      censored = !std::isfinite(all);
    }
    least.push_back(at_least);
  }
};

/// What the series of a replay has.
double largest_of(const replay::StepSeries& series) {
  double largest = 0;
  for (const replay::AttemptMagnitudes& seen : series.seen) {
    const double least = std::isfinite(seen.max_abs) ? seen.max_abs
                         : seen.overflow_from == 0   ? 0
                                                     : 65520 / seen.overflow_from;
    largest = std::max(largest, least);
  }
  return largest;
}

/// Runs of which more or less is recorded: the scale by the scalars, by the manifest or not at all,
/// tables at every step or at the first, a loss in FP16, infinities, NaN.
test::SmallRun any_run(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](unsigned end) { return static_cast<unsigned>(random() % end); };
  const bool half = below(3) != 0;
  test::SmallRun run{half ? Dtype::f16 : std::optional<Dtype>()};
  const double scale = std::ldexp(1.0, static_cast<int>(below(12)));
  const unsigned scale_in = below(3);
  if (scale_in == 1) {
    (*run.manifest().about)["loss_scaling"] = {{"policy", "static"}, {"scale", scale}};
  }
  if (below(2) == 0) run.hold_loss_in(Dtype::f16);
  const bool tables = below(2) == 0;
  const auto steps = static_cast<std::int64_t>(1 + below(8));
  for (std::int64_t step = 0; step < steps; ++step) {
    const double value =
        std::ldexp(1 + static_cast<double>(below(1024)) / 1024, static_cast<int>(below(14)) - 8);
    const bool infinite = value * scale >= 65520 || below(12) == 0;
    if (tables || step == 0) {
      run.put_step(step, 1.0, 0x1p-10f);
      run.replace("weight_grad/b.weight", step, {static_cast<float>(infinite ? INFINITY : value)});
    }
    log::StepScalars& s = run.scalars(step);
    s.max_abs_activation_grad = 0x1p-10;
    s.max_abs_weight_grad = !infinite ? value : below(3) == 0 ? NAN : INFINITY;
    s.found_inf = infinite;
    s.loss_scale.reset();
    if (scale_in == 0) s.loss_scale = scale;
    // Beside a NaN loss nothing tells which infinities of wide gradients a cast made.
    s.loss = half && below(16) == 0 ? NAN : std::ldexp(1.0, static_cast<int>(below(16)));
  }
  return run;
}

TEST_CASE("A replay shows the static scale that is recommended, and finds it itself",
          "[property]") {
  int recommended = 0, compared = 0, refused = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    CAPTURE(seed);
    const test::TempFolder folder;
    any_run(seed).write(folder / "run");
    Findings findings = analyze({folder / "run"}, {}, {}, {.series = true}, {});
    REQUIRE(findings.series.series.size() == 1);
    const auto found = replay::study_magnitudes(replay::StepSeries(findings.series.series[0]), {});
    const Study all = study(std::move(findings), {}, {}, replay::PolicyOptions());
    REQUIRE(all.policies.size() == 1);
    const std::optional<replay::Trace>& fixed = all.policies[0].fixed;
    const bool advised = all.advice.static_log2 && !all.advice.all_steps_censored();
    CHECK(fixed.has_value() == advised);
    if (!all.advice.static_log2) {
      ++refused;
      continue;
    }
    ++recommended;
    if (fixed) CHECK(fixed->scale_at(0) == std::exp2(*all.advice.static_log2));
    CHECK(all.advice.dynamic.empty() == !all.policies[0].tuned);
    // Nothing where all of its steps are infinite, at an unknown scale.
    if (!found.advised.log2) continue;
    ++compared;
    REQUIRE_FALSE(all.advice.dynamic.empty());
    CHECK(found.advised.log2 == all.advice.static_log2);
    CHECK(all.policies[0].tuned->initial == all.advice.dynamic[0].init);
  }
  CHECK(recommended > 400);
  CHECK(compared + 10 > recommended);
  CHECK(refused > 0);
}

TEST_CASE("One largest gradient, whoever asks", "[oracle]") {
  int with_infinities = 0, checked = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    const RandomRun random(seed);
    const test::TempFolder folder;
    random.run.write(folder / "run");
    const Study found = study(analyze({folder / "run"}, {}, {}, {.series = true}, {}), {}, {});
    REQUIRE(found.overflow.not_scale_related.empty());
    const double largest = *std::ranges::max_element(random.least);
    with_infinities += random.censored ? 1 : 0;
    ++checked;

    REQUIRE(found.advice.limited_by);
    CHECK(found.advice.limited_by->max_abs == largest);
    CHECK(found.advice.limited_by->censored == random.censored);
    CHECK(found.advice.static_log2 ==
          underflow::StepMagnitude{magnitude_of(largest)}.highest_safe_log2(kBinary16) - 1);

    double least_room = INFINITY;
    for (const overflow::Headroom& h : found.overflow.headroom) {
      if (found.analysis.tensors()[h.tensor].loss_scaled)
        least_room = std::min(least_room, h.least_at_1);
    }
    CHECK(least_room == Approx(std::log2(65520 / largest)).margin(1e-12));

    const underflow::RecommendOptions options;
    const auto maxima = recommend::recommend({found.analysis, found.overflow, options}).peaks.logs;
    REQUIRE(maxima.size() == 1);
    REQUIRE(maxima[0].steps.size() == random.least.size());
    for (std::size_t i = 0; i < random.least.size(); ++i) {
      CHECK(maxima[0].steps[i].highest_log2 ==
            underflow::StepMagnitude{magnitude_of(random.least[i])}.highest_safe_log2(kBinary16));
    }

    REQUIRE(found.series.series.size() == 1);
    CHECK(largest_of(found.series.series[0]) == largest);
  }
  CHECK(checked == 300);
  CHECK(with_infinities > 30);
  CHECK(with_infinities < 270);
}

}  // namespace test_one_magnitude
