// SPDX-License-Identifier: Apache-2.0
// The optimizer: its binary16 and bfloat16 against the scalar emulator, its binary32 against the
// reference, the reference against closed forms; and the story of the update that is lost.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "halfscope/number/arithmetic.hpp"
#include "sim/operation.hpp"

namespace test_update {

using namespace sim_test;

using RuleKind = backend::UpdateRule::Kind;
constexpr std::array kKinds = {RuleKind::sgd, RuleKind::momentum, RuleKind::adam};

std::size_t state_count(RuleKind kind) {
  return kind == RuleKind::sgd ? 0 : kind == RuleKind::momentum ? 1 : 2;
}

/// One parameter element, every operation by number/arithmetic.hpp.
class Emulated {
 public:
  Emulated(Format format, const backend::UpdateRule& rule) : f_(format), rule_(rule) {}

  std::uint64_t constant(double x) const { return from_double(f_, x).bits; }
  std::uint64_t add(std::uint64_t a, std::uint64_t b) const {
    return halfscope::add(f_, a, b).bits;
  }
  std::uint64_t times(std::uint64_t a, std::uint64_t b) const {
    return halfscope::multiply(f_, a, b).bits;
  }

  /// Updates w and the state; returns what was subtracted.
  std::uint64_t step(std::uint64_t g, std::uint64_t& w, std::uint64_t& m, std::uint64_t& v) const {
    if (rule_.weight_decay != 0) g = add(g, times(constant(rule_.weight_decay), w));
    std::uint64_t change = 0;
    if (rule_.kind == RuleKind::sgd) {
      change = times(constant(rule_.learning_rate), g);
    } else if (rule_.kind == RuleKind::momentum) {
      m = add(times(constant(rule_.momentum), m), g);
      change = times(constant(rule_.learning_rate), m);
    } else {
      change = adam(g, m, v);
    }
    w = halfscope::subtract(f_, w, change).bits;
    return change;
  }

 private:
  std::uint64_t adam(std::uint64_t g, std::uint64_t& m, std::uint64_t& v) const {
    const double t = double(rule_.t);
    m = add(times(constant(rule_.beta1), m), times(constant(1 - rule_.beta1), g));
    v = add(times(constant(rule_.beta2), v), times(times(constant(1 - rule_.beta2), g), g));
    const std::uint64_t root = halfscope::square_root(f_, v).bits;
    const double correction = std::sqrt(1 - std::pow(rule_.beta2, t));
    const std::uint64_t below =
        add(halfscope::divide(f_, root, constant(correction)).bits, constant(rule_.epsilon));
    const double rate = rule_.learning_rate / (1 - std::pow(rule_.beta1, t));
    return halfscope::divide(f_, times(constant(rate), m), below).bits;
  }

  Format f_;
  backend::UpdateRule rule_;
};

/// Values from subnormals to beyond overflow, and what is not a number.
Floats wide_values(std::size_t count, Dtype dtype, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-26, 16);
  Floats values(count);
  for (float& value : values) {
    const double size = std::exp2(exponent(random));
    value = static_cast<float>(random() % 2 == 0 ? size : -size);
  }
  values[0] = std::numeric_limits<float>::infinity();
  values[1] = std::numeric_limits<float>::quiet_NaN();
  values[2] = 0;
  values[3] = -0.0F;
  return rounded(dtype, values);
}

bool same(Format f, std::uint64_t bits, float value) {
  const std::uint64_t found = from_float(f, value).bits;
  return found == bits || (is_nan(f, found) && is_nan(f, bits));
}

struct Trained {
  backend::Tensor weight, delta;
  Tensors state;
};

Trained begin(backend::Backend& backend, RuleKind kind, Dtype dtype, const Floats& weight) {
  const backend::Shape shape{std::ssize(weight)};
  Trained trained{tensor_of(backend, shape, dtype, weight), backend.make(shape, dtype), {}};
  for (std::size_t i = 0; i < state_count(kind); ++i) {
    trained.state.push_back(backend.make(shape, dtype));
  }
  return trained;
}

void check_against_emulator(backend::UpdateRule rule, Dtype dtype) {
  const Format f = format_of(dtype);
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 2);
  constexpr std::size_t kCount = 3000;  // several blocks and a rest
  const Floats start = wide_values(kCount, dtype, 1);
  Trained trained = begin(*backend, rule.kind, dtype, start);
  std::vector<std::uint64_t> w(kCount), m(kCount), v(kCount);
  for (std::size_t i = 0; i < kCount; ++i) w[i] = from_float(f, start[i]).bits;
  constexpr double kUnscale = 0.125;
  std::size_t different = 0;
  for (rule.t = 1; rule.t <= 4; ++rule.t) {
    const Floats gradient = wide_values(kCount, dtype, 10 + std::uint64_t(rule.t));
    const backend::Tensor g = tensor_of(*backend, {std::ssize(gradient)}, dtype, gradient);
    backend->update(rule, g, kUnscale, trained.weight, trained.state, trained.delta);
    const Floats found = backend->get(trained.weight), delta = backend->get(trained.delta);
    const Emulated emulated(f, rule);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::uint64_t unscaled =
          emulated.times(from_float(f, gradient[i]).bits, emulated.constant(kUnscale));
      const std::uint64_t change = emulated.step(unscaled, w[i], m[i], v[i]);
      different += !same(f, w[i], found[i]) || !same(f, change ^ f.sign_mask(), delta[i]);
      if (rule.kind != RuleKind::sgd) {
        different += !same(f, m[i], backend->get(trained.state[0])[i]) && i % 100 == 0;
      }
    }
  }
  CHECK(different == 0);
}

backend::UpdateRule rule_of(RuleKind kind, double weight_decay = 0) {
  backend::UpdateRule rule;
  rule.kind = kind;
  rule.learning_rate = kind == RuleKind::adam ? 1e-2 : 0.1;
  rule.weight_decay = weight_decay;
  return rule;
}

TEST_CASE("Updates equal the scalar emulator's, bit for bit, in every dtype") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16, Dtype::f32}) {
    for (const RuleKind kind : kKinds) {
      for (const double decay : {0.0, 0.01}) {
        CAPTURE(name_of(dtype), int(kind), decay);
        check_against_emulator(rule_of(kind, decay), dtype);
      }
    }
  }
}

TEST_CASE("Updates in binary32 are the reference's") {
  for (const RuleKind kind : kKinds) {
    CAPTURE(int(kind));
    backend::UpdateRule rule = rule_of(kind, 0.01);
    backend::reference::ReferenceBackend exact;
    const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 2);
    const Floats start = normal(5000, 1);
    Trained wanted = begin(exact, kind, Dtype::f32, start),
            found = begin(*backend, kind, Dtype::f32, start);
    for (rule.t = 1; rule.t <= 10; ++rule.t) {
      const Floats gradient = normal(5000, 20 + std::uint64_t(rule.t), 1000);
      const backend::Tensor g = tensor_of(exact, {5000}, Dtype::f32, gradient),
                            h = tensor_of(*backend, {5000}, Dtype::f32, gradient);
      exact.update(rule, g, 1e-3, wanted.weight, wanted.state, wanted.delta);
      backend->update(rule, h, 1e-3, found.weight, found.state, found.delta);
      CHECK(relative_error(backend->get(found.delta), backend::reference::values(wanted.delta)) <
            1e-5);
    }
    CHECK(relative_error(backend->get(found.weight), backend::reference::values(wanted.weight)) <
          1e-6);
  }
}

TEST_CASE("The reference's rules under a constant gradient have their closed forms") {
  backend::reference::ReferenceBackend backend;
  constexpr double kGradient = 3;
  for (const RuleKind kind : kKinds) {
    CAPTURE(int(kind));
    backend::UpdateRule rule = rule_of(kind);
    rule.epsilon = 0.5;
    Trained trained = begin(backend, kind, Dtype::f32, {1});
    const backend::Tensor g = tensor_of(backend, {1}, Dtype::f32, Floats{6});
    for (rule.t = 1; rule.t <= 20; ++rule.t) {
      backend.update(rule, g, 0.5, trained.weight, trained.state, trained.delta);
      // A geometric series; and Adam's corrected means are the gradient and its square at every t.
      const double change = kind == RuleKind::sgd ? 0.1 * kGradient
                            : kind == RuleKind::momentum
                                ? 0.1 * kGradient * (1 - std::pow(0.9, double(rule.t))) / (1 - 0.9)
                                : 0.01 * kGradient / (kGradient + 0.5);
      CHECK(backend::reference::values(trained.delta)[0] == Approx(-change).epsilon(1e-12));
    }
  }
  backend::UpdateRule decaying = rule_of(RuleKind::sgd, 0.25);
  Trained trained = begin(backend, RuleKind::sgd, Dtype::f32, {2});
  const backend::Tensor g = tensor_of(backend, {1}, Dtype::f32, Floats{6});
  backend.update(decaying, g, 0.5, trained.weight, trained.state, trained.delta);
  CHECK(backend::reference::values(trained.weight)[0] == Approx(2 - 0.1 * (3 + 0.25 * 2)));
}

TEST_CASE("A weight of 1 and updates of 1e-4: lost in binary16, kept by a master copy") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::UpdateRule rule;
  rule.learning_rate = 1e-4;
  backend::Tensor none;
  for (const float direction : {1.0F, -1.0F}) {
    CAPTURE(direction);
    const backend::Tensor gradient = tensor_of(*backend, {1}, Dtype::f16, Floats{-direction});
    backend::Tensor half = tensor_of(*backend, {1}, Dtype::f16, Floats{1}),
                    delta = backend->make({1}, Dtype::f16);
    for (int i = 0; i < 1000; ++i) {
      backend->update(rule, gradient, 1, half, {}, delta);
      REQUIRE(backend->get(half)[0] == 1);  // at half of no spacing of binary16
      REQUIRE(backend->get(delta)[0] * direction == 0x1.a38p-14F);  // 1e-4 itself is there
    }

    backend::Tensor master = tensor_of(*backend, {1}, Dtype::f32, Floats{1}), copy = half;
    int seen = 0;
    for (int i = 1; i <= 10 && seen == 0; ++i) {
      backend->update(rule, gradient, 1, master, {}, none);
      backend->copy(master, copy);
      if (backend->get(copy)[0] != 1) seen = i;
    }
    // Spacings are 2^-10 above 1 and 2^-11 below: half of one is 4.88e-4 and 2.44e-4.
    CHECK(seen == (direction > 0 ? 5 : 3));
    CHECK(backend->get(copy)[0] == (direction > 0 ? 1 + 0x1p-10F : 1 - 0x1p-11F));
    CHECK(backend->get(master)[0] == Approx(1 + direction * double(seen) * 1e-4).epsilon(1e-6));
  }
}

TEST_CASE("A gradient that unscaling in binary16 makes zero is lost, a master copy keeps it") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::UpdateRule rule;
  rule.learning_rate = 1;
  const backend::Tensor gradient = tensor_of(*backend, {1}, Dtype::f16, Floats{0x1p-10F});
  backend::Tensor half = backend->make({1}, Dtype::f16), master = backend->make({1}, Dtype::f32),
                  none;
  backend->update(rule, gradient, 0x1p-16, half, {}, none);
  backend->update(rule, gradient, 0x1p-16, master, {}, none);
  CHECK(backend->get(half)[0] == 0);
  CHECK(backend->get(master)[0] == -0x1p-26F);
}

TEST_CASE(
    "Adam in binary16: its epsilon is zero, and a gradient whose square is lost is infinite") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  const backend::UpdateRule rule = rule_of(RuleKind::adam);
  for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
    Trained trained = begin(*backend, RuleKind::adam, dtype, {0.5F, 0.5F});
    const backend::Tensor g = tensor_of(*backend, {2}, dtype, Floats{1, 1e-4F});
    backend->update(rule, g, 1, trained.weight, trained.state, trained.delta);
    const Floats weight = backend->get(trained.weight);
    CHECK(weight[0] == Approx(0.49).epsilon(1e-3));
    if (dtype == Dtype::f16) {
      CHECK(weight[1] == -std::numeric_limits<float>::infinity());
    } else {
      CHECK(weight[1] == Approx(0.49).epsilon(1e-3));
    }
  }
}

TEST_CASE("An update refuses state that is not its rule's") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::Tensor w = backend->make({2}, Dtype::f32), g = backend->make({2}, Dtype::f32), none;
  CHECK_THROWS_AS(backend->update(rule_of(RuleKind::adam), g, 1, w, {}, none),
                  std::invalid_argument);
  Tensors narrow{backend->make({2}, Dtype::f16)};
  CHECK_THROWS_AS(backend->update(rule_of(RuleKind::momentum), g, 1, w, narrow, none),
                  std::invalid_argument);
}

}  // namespace test_update
