// SPDX-License-Identifier: Apache-2.0
// The rows of a GPU against the same steps as kernels of CUDA's intrinsics.
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/optimizer_steps.hpp"
#include "cuda/skip.hpp"
#include "halfscope/optimizer/step.hpp"

namespace test_optimizer {
namespace {

using namespace halfscope::optimizer;
using optimizer_steps::Element;
using optimizer_steps::Row;

struct Named {
  Row row;
  std::string_view name;
};
constexpr Named kRows[] = {{Row::single, "cuda"},
                           {Row::foreach, "cuda-foreach"},
                           {Row::capturable, "cuda-capturable"},
                           {Row::foreach_capturable, "cuda-foreach-capturable"},
                           {Row::fused, "cuda-fused"},
                           {Row::fused_2025, "cuda-fused-2025"}};

std::vector<Element> elements(std::size_t count) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  const auto value = [&](float size) {
    return size * normal(random) * std::ldexp(1.0f, -static_cast<int>(random() % 12));
  };
  std::vector<Element> all(count);
  for (Element& e : all) {
    e = {value(1), value(0.1f), value(0.1f), std::abs(value(1e-3f)), std::abs(value(1e-3f))};
    if (random() % 50 == 0) e.gradient = std::ldexp(e.gradient, random() % 2 ? 100 : -120);
  }
  return all;
}

std::vector<Element> by_row(std::string_view name, const Settings& settings, double steps,
                            const std::vector<Element>& given, Bound bound) {
  std::vector<float> columns[5];
  for (const Element& e : given) {
    const float all[] = {e.weight, e.gradient, e.first, e.second, e.largest};
    for (int i = 0; i < 5; ++i) columns[i].push_back(all[i]);
  }
  const auto view = [&](int i) { return halfscope::view_of(columns[i]); };
  const Views views = {view(0), view(1), view(2), view(3), view(4), given.size()};
  std::vector<Element> after = given;
  const Step<float> step(*find_variant(name), settings, {.steps = steps, .bound = bound});
  step.run(views, 0, given.size(), [&](const Results<float>& r) {
    for (std::size_t i = 0; i < r.count; ++i) {
      Element& e = after[r.start + i];
      e = {r.weight[i], e.gradient, r.first[i], r.second[i], r.largest[i]};
    }
  });
  return after;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Returns true if beta^t of the device is the nearest number.
bool is_nearest(double beta, double steps, float power) {
  return power == static_cast<float>(std::pow(static_cast<float>(beta), steps));
}

void compare(const Named& row, const Settings& settings, float steps) {
  const std::vector<Element> given = elements(3000);
  float powers[2] = {};
  const std::vector<Element> device =
      optimizer_steps::on_device(row.row, settings, steps, given, powers);
  const auto nearest = by_row(row.name, settings, steps, given, Bound::nearest);
  const auto shortest = by_row(row.name, settings, steps, given, Bound::shortest);
  const auto longest = by_row(row.name, settings, steps, given, Bound::longest);
  std::size_t state = 0, weights = 0, outside = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const bool sgd = settings.algorithm == Algorithm::sgd;
    state += !(same(device[i].first, nearest[i].first) &&
               (sgd || (same(device[i].second, nearest[i].second) &&
                        same(device[i].largest, nearest[i].largest))));
    weights += !same(device[i].weight, nearest[i].weight);
    const auto [low, high] = std::minmax(shortest[i].weight, longest[i].weight);
    outside += device[i].weight < low || device[i].weight > high;
  }
  INFO(row.name << ", algorithm " << static_cast<int>(settings.algorithm) << ", step " << steps);
  CHECK(state == 0);
  CHECK(outside == 0);
  const bool by_powers = find_variant(row.name)->accuracy == Accuracy::powers;
  if (!by_powers || settings.algorithm == Algorithm::sgd ||
      (is_nearest(settings.beta1, steps, powers[0]) &&
       is_nearest(settings.beta2, steps, powers[1]))) {
    CHECK(weights == 0);
  }
}

TEST_CASE("optimizer: Adam and AdamW of a GPU's rows are CUDA's operations", "[gpu]") {
  if (skipped()) return;
  for (const Named& row : kRows) {
    for (const Algorithm algorithm : {Algorithm::adam, Algorithm::adamw}) {
      for (const float steps : {1.0f, 2.0f, 7.0f, 1000.0f}) {
        compare(row, {.algorithm = algorithm, .weight_decay = 0.01}, steps);
        compare(row, {.algorithm = algorithm, .lr = 0.03, .maximize = true}, steps);
        compare(row,
                {.algorithm = algorithm,
                 .beta1 = 0.4,
                 .beta2 = 0.95,
                 .weight_decay = 0.3,
                 .amsgrad = true},
                steps);
      }
    }
  }
}

TEST_CASE("optimizer: SGD of a GPU's rows is CUDA's operations", "[gpu]") {
  if (skipped()) return;
  for (const Named& row : {kRows[0], kRows[4]}) {
    const Settings momentum = {
        .algorithm = Algorithm::sgd, .lr = 0.03, .weight_decay = 0.01, .momentum = 0.9};
    Settings settings = momentum;
    compare(row, settings, 3);
    settings.nesterov = true;
    compare(row, settings, 3);
    settings = momentum;
    settings.dampening = 0.3;
    settings.maximize = true;
    compare(row, settings, 3);
  }
}

}  // namespace
}  // namespace test_optimizer
