// SPDX-License-Identifier: Apache-2.0
// Predictions from 8 ranks against the sums of 1,024 ranks of the same elements.
#include "analyzers/reduction/predict.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/reduction/reduce.hpp"

namespace test_predict {

using namespace halfscope;
using namespace halfscope::analyzers::reduction;

using Ranks = std::vector<std::vector<float>>;
using Random = std::mt19937_64;
using Draw = std::function<double(Random&)>;

constexpr std::size_t kRecorded = 8, kWanted = 1024;

double normal(Random& random) { return std::normal_distribution<double>()(random); }
double laplace(Random& random) {
  return std::exponential_distribution<double>()(random) * (random() % 2 == 0 ? 1 : -1);
}

/// Addend r of element i is BF16(scale_i (mean_i + noise_ir)), scale_i log-normal.
struct Gradients {
  std::string name;
  Draw mean, noise;
  double log_scale;       ///< standard deviation of ln scale_i
  bool in_means = false;  ///< noise is in units of the mean: its skewness has the mean's sign
};

/// Draws to draw from again: a draw from a million draws is cheap.
std::vector<float> population(const Draw& draw, Random& random) {
  std::vector<float> out(std::size_t{1} << 20);
  for (float& x : out) x = static_cast<float>(draw(random));
  return out;
}

/// Ranks are made and summed by parts of the elements; the first ones are kept.
struct Trial {
  Ranks recorded;
  reduction::Facts truth;
};

Trial trial(const Gradients& g, Format f, std::size_t n) {
  constexpr std::size_t kPart = 8192;
  Random random(n);
  const std::vector<float> noise = population(g.noise, random);
  Trial out;
  out.recorded.resize(kRecorded);
  for (std::size_t first = 0; first < n; first += kPart) {
    std::vector<float> means(kPart), scales(kPart);
    for (std::size_t i = 0; i < kPart; ++i) {
      scales[i] = static_cast<float>(std::exp(g.log_scale * normal(random)));
      means[i] = static_cast<float>(g.mean(random));
    }
    Ranks ranks(kWanted, std::vector<float>(kPart));
    for (std::size_t r = 0; r < kWanted; ++r) {
      for (std::size_t i = 0; i < kPart; ++i) {
        const float unit = g.in_means ? means[i] : 1.0f;
        ranks[r][i] = scales[i] * (means[i] + unit * noise[random() >> 44]);
      }
      quantise(kBfloat16, ranks[r]);
      if (r >= kRecorded) continue;
      out.recorded[r].insert(out.recorded[r].end(), ranks[r].begin(), ranks[r].end());
    }
    const std::vector<std::span<const float>> addends(ranks.begin(), ranks.end());
    out.truth += reduction::reduce(f, addends);
  }
  return out;
}

std::vector<std::span<const float>> spans(const Ranks& ranks) {
  return {ranks.begin(), ranks.end()};
}

/// Empty if within a tenth, and inside of the interval.
std::string fault(const std::string& what, const Estimate& e, double truth) {
  const std::string all = what + ": predicted " + std::to_string(e.middle) + " [" +
                          std::to_string(e.low) + ", " + std::to_string(e.high) + "], is " +
                          std::to_string(truth);
  const bool inside = e.low <= truth && truth <= e.high;
  return inside && std::fabs(e.middle / truth - 1) <= 0.1 ? "" : all;
}

Ranks small(std::size_t ranks, std::size_t n, const Draw& draw) {
  Random random(3);
  Ranks out(ranks, std::vector<float>(n));
  for (auto& rank : out) {
    for (float& x : rank) x = static_cast<float>(draw(random));
  }
  return out;
}

TEST_CASE("eight ranks predict 1,024", "[analyzers][reduction][predict]") {
  const Draw zero = [](Random&) { return 0.0; }, one = [](Random&) { return 1.0; };
  const Draw half = [](Random& r) { return 0.5 * laplace(r); };
  const Draw third = [](Random& r) { return 0.3 * laplace(r); };
  const Draw exponential = [](Random& r) { return std::exponential_distribution<double>()(r) - 1; };
  const Gradients all[] = {{"normal means and noise", normal, normal, 0},
                           {"noise alone", zero, normal, 0},
                           {"all means 1", one, normal, 0},
                           {"Laplace means and noise", half, laplace, 0},
                           {"Laplace, log-normal scales", third, laplace, 1},
                           {"normal means, exponential", normal, exponential, 0, true}};
  for (const Gradients& g : all) {
    for (const Format f : {kBfloat16, kBinary16}) {
      const bool bfloat16 = f == kBfloat16;
      if (!bfloat16 && g.name != "normal means and noise") continue;
      const Trial t = trial(g, f, g.log_scale == 0 ? 65536 : 131072);
      const Prediction p = predict(f, spans(t.recorded), kWanted);
      CHECK(fault(g.name + ", lost", p.lost, t.truth.lost_share()) == "");
      CHECK(fault(g.name + ", error", p.relative_l2, t.truth.relative_l2()) == "");
      CHECK(p.noise_alone == (g.name == "noise alone"));
    }
  }
}

TEST_CASE("gradients that few ranks have", "[analyzers][reduction][predict]") {
  // On three of ten ranks mean + noise, on the others `rest` times noise.
  const auto judge = [](const std::string& name, double mean_scale, double noise, double rest) {
    Random random(7);
    std::vector<double> means(16384);
    for (double& mean : means) mean = mean_scale * normal(random);
    Ranks ranks(64);
    for (auto& rank : ranks) {
      for (const double mean : means) {
        const bool has = random() % 10 < 3;
        const double x = has ? mean + noise * normal(random) : rest * normal(random);
        rank.push_back(static_cast<float>(x));
      }
    }
    const auto addends = spans(ranks);
    const double truth = reduction::reduce(kBfloat16, addends).lost_share();
    const Prediction p = predict(kBfloat16, std::span(addends).first(kRecorded), addends.size());
    INFO(fault(name, p.lost, truth));
    CHECK(p.lost.low <= truth);
    CHECK(truth <= p.lost.high);
    CHECK(std::fabs(p.lost.middle / truth - 1) <= 0.4);
  };
  judge("the others nearly none", 3.3, 0.1, 0.1);  // 90 % low if noise does not go with the mean
  judge("the others none", 1, 1, 0);               // 16 times too high if zeros are values
}

TEST_CASE("a prediction is the same for any number of threads", "[analyzers][reduction][predict]") {
  const Draw exponential = std::exponential_distribution<double>();  // skewed by its mean
  const bool skewed = GENERATE(false, true);
  const Ranks ranks = small(8, 3000, skewed ? exponential : laplace);
  const auto numbers = [&](int threads) {
    const Prediction p = predict(kBfloat16, spans(ranks), 96, {.threads = threads});
    return std::vector{p.lost.low,        p.lost.middle,        p.lost.high,
                       p.relative_l2.low, p.relative_l2.middle, p.relative_l2.high};
  };
  REQUIRE(numbers(1) == numbers(2));
  REQUIRE(numbers(1) == numbers(0));
}

TEST_CASE("what is known exactly is predicted exactly", "[analyzers][reduction][predict]") {
  const Ranks zeros(5, std::vector<float>(100));
  const Prediction nothing = predict(kBfloat16, spans(zeros), 512);
  REQUIRE(nothing.lost.high == 0);
  REQUIRE(nothing.relative_l2.high == 0);
  const Ranks ones(5, std::vector<float>(100, 1.0f));  // the same on all ranks: 512 of them
  const Prediction p = predict(kBfloat16, spans(ones), 512);
  REQUIRE(p.lost.middle == 256.0 / 511);
  REQUIRE(p.relative_l2.middle == 0.5);
  const Ranks large(5, std::vector<float>(100, 1024.0f));
  REQUIRE(predict(kBinary16, spans(large), 63).overflow.high == 0);
  REQUIRE(predict(kBinary16, spans(large), 64).overflow.low >= 0.95);
  Ranks halves = ones;  // half of the elements 0: their additions lose nothing
  for (auto& rank : halves) std::fill(rank.begin(), rank.begin() + 50, 0.0f);
  REQUIRE(predict(kBfloat16, spans(halves), 512).lost.middle == 128.0 / 511);
}

TEST_CASE("elements that are not finite are left out", "[analyzers][reduction][predict]") {
  Ranks ranks = small(8, 2000, normal);
  const Prediction want = predict(kBfloat16, spans(ranks), 64);
  for (auto& rank : ranks) rank.push_back(1);
  ranks[3].back() = std::numeric_limits<float>::infinity();
  const Prediction p = predict(kBfloat16, spans(ranks), 64);
  REQUIRE(p.lost.middle == want.lost.middle);
  REQUIRE(p.relative_l2.high == want.relative_l2.high);
}

TEST_CASE("refused predictions", "[analyzers][reduction][predict]") {
  const Ranks three = small(3, 10, normal);
  REQUIRE_THROWS_AS(predict(kBfloat16, spans(three), 64), std::invalid_argument);
  REQUIRE_THROWS_AS(predict(kBfloat16, spans(small(4, 10, normal)), 0), std::invalid_argument);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Ranks broken(4, std::vector<float>(3, nan));
  REQUIRE_THROWS_AS(predict(kBfloat16, spans(broken), 64), std::invalid_argument);
}

}  // namespace test_predict
