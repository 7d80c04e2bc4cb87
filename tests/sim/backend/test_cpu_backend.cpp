// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "sim/backend/backend.hpp"
#include "tests/catch.hpp"

namespace halfscope::sim::test_cpu_backend {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

struct OtherStorage final : backend::Storage {};

TEST_CASE("sim: a tensor's values are always values of its dtype") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  const std::vector<float> values = {1.0f + 0x1p-11f, 1.0f + 0x1p-9f, 0x1p-25f,
                                     0x1.8p-25f,      70000.0f,       -0.0f};
  backend::Tensor wide = backend->make({2, 3}, Dtype::f32),
                  half = backend->make({2, 3}, Dtype::f16);
  backend::Tensor brain = backend->make({6}, Dtype::bf16);
  CHECK(backend->get(half) == std::vector<float>(6));
  for (backend::Tensor* t : {&wide, &half, &brain}) backend->set(*t, values);
  CHECK(backend->get(wide) == values);
  // Ties to even, 2^-25 among them; IEEE 754-2019, 4.3.1 and 7.4.
  const std::vector<float> in_half = {1.0f, 1.0f + 0x1p-9f, 0.0f, 0x1p-24f, kInf, -0.0f};
  CHECK(backend->get(half) == in_half);
  CHECK(std::signbit(backend->get(half)[5]));
  CHECK(backend->get(brain) ==
        std::vector<float>{1.0f, 1.0f, 0x1p-25f, 0x1.8p-25f, 70144.0f, -0.0f});

  backend::Tensor copied = backend->make({6}, Dtype::f16);
  backend->copy(wide, copied);
  CHECK(backend->get(copied) == in_half);
  backend->copy(half, wide);
  CHECK(backend->get(wide) == in_half);
  backend->fill(half, 1.0f + 0x1.8p-11f);
  CHECK(backend->get(half) == std::vector<float>(6, 1.0f + 0x1p-10f));
}

TEST_CASE("sim: handles of a tensor share its memory") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::Tensor a = backend->make({2, 2}, Dtype::f32);
  backend::Tensor b = a;
  b.shape = {4};
  backend->fill(b, 3.0f);
  CHECK(backend->get(a) == std::vector<float>(4, 3.0f));
}

TEST_CASE("sim: facts of gradients tell largest, squares and what is not finite") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 2);
  const auto facts = [&](const std::vector<std::vector<float>>& lists) {
    std::vector<backend::Tensor> tensors;
    for (const std::vector<float>& values : lists) {
      const auto count = static_cast<std::int64_t>(values.size());
      tensors.push_back(backend->make({count}, Dtype::f32));
      backend->set(tensors.back(), values);
    }
    return backend->facts(tensors);
  };
  const backend::GradientFacts some = facts({{1, -2}, {}, {0, 0.5f}});
  CHECK((some.max_abs == 2 && some.sum_squares == 5.25 && !some.nonfinite));
  const backend::GradientFacts none = facts({});
  CHECK((none.max_abs == 0 && none.sum_squares == 0 && !none.nonfinite));
  const backend::GradientFacts infinite = facts({{1, -kInf}, {3}});
  CHECK((infinite.max_abs == HUGE_VAL && infinite.sum_squares == 10 && infinite.nonfinite));
  for (const std::vector<std::vector<float>>& lists :
       std::vector<std::vector<std::vector<float>>>{{{1, NAN, 4}, {kInf}}, {{kInf}, {NAN, 1, 4}}}) {
    const backend::GradientFacts nan = facts(lists);
    CHECK((std::isnan(nan.max_abs) && nan.sum_squares == 17 && nan.nonfinite));
  }
  std::vector<float> many(100000, 0.25f);  // several parts; a NaN hides in one of the middle
  CHECK(facts({many}).sum_squares == 6250);
  many[50000] = NAN;
  CHECK(std::isnan(facts({many}).max_abs));
  many[50000] = -8;
  CHECK(facts({many}).max_abs == 8);
}

TEST_CASE("sim: counts and moments are those of the stored values") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::Tensor half = backend->make({4}, Dtype::f16);
  backend->set(half, std::vector<float>{3.0f, -1.0f, 0x1p-30f, 65520.0f});
  BinadeTable wanted;
  wanted.add_specials({.zero = 1, .positive_infinity = 1});
  wanted.add(magnitude_of(3.0), false);
  wanted.add(magnitude_of(1.0), true);
  CHECK(backend->count(half) == wanted);
  CHECK(backend->moments(half).sum_squares == 10);
}

TEST_CASE("sim: the CPU backend names itself and refuses what is not its own") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  CHECK_THAT(backend->describe(), Catch::StartsWith("cpu: "));
  CHECK_THAT(backend->describe(), Catch::Contains("Eigen 3."));
  CHECK_THROWS_AS(backend::make_cpu_backend(backend::Accumulation::fp32, -1),
                  std::invalid_argument);
  CHECK_THROWS_AS(backend->make({2}, Dtype::f64), std::invalid_argument);
  CHECK_THROWS_AS(backend->make({-2}, Dtype::f32), std::invalid_argument);
  backend::Tensor a = backend->make({2}, Dtype::f32), b = backend->make({3}, Dtype::f32);
  CHECK_THROWS_AS(backend->copy(a, b), std::invalid_argument);
  CHECK_THROWS_AS(backend->set(a, std::vector<float>(3)), std::invalid_argument);
  CHECK_THROWS_AS(backend->get(backend::Tensor{{2}, Dtype::f32, nullptr}), std::invalid_argument);
  CHECK_THROWS_AS(backend->get(backend::Tensor{{2}, Dtype::f32, std::make_shared<OtherStorage>()}),
                  std::invalid_argument);
  b.shape = {4};
  CHECK_THROWS_AS(backend->get(b), std::invalid_argument);
}

}  // namespace
}  // namespace halfscope::sim::test_cpu_backend
