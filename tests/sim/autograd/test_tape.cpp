// SPDX-License-Identifier: Apache-2.0
#include "sim/autograd/tape.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/network_fixture.hpp"

namespace test_tape {

using namespace sim_test;

std::unique_ptr<backend::Backend> cpu(int threads = 1) {
  return backend::make_cpu_backend(backend::Accumulation::fp32, threads);
}

/// Of a parameter's values `count`, spread; slopes of the loss where two steps agree on one.
void compare_slopes(Run& run, autograd::Parameter& parameter, std::size_t count,
                    std::size_t& compared, std::size_t& kinks) {
  const auto weights = backend::reference::values(parameter.weight);
  const std::vector<double> gradient(backend::reference::values(parameter.gradient).begin(),
                                     backend::reference::values(parameter.gradient).end());
  double size = 0;
  for (const double value : gradient) size = std::max(size, std::abs(value));
  const auto slope = [&](double& value, double step) {
    const double at = value;
    value = at + step;
    const double above = run.loss();
    value = at - step;
    const double below = run.loss();
    value = at;
    return (above - below) / (2 * step);
  };
  const std::size_t stride = std::max<std::size_t>(1, weights.size() / count);
  for (std::size_t i = stride / 2; i < weights.size(); i += stride) {
    const double wide = slope(weights[i], 0x1p-21), narrow = slope(weights[i], 0x1p-23);
    if (std::abs(wide - narrow) > 1e-5 * size) {  // ReLU, maxima or mining changed in between
      ++kinks;
      continue;
    }
    ++compared;
    INFO(parameter.name << " " << i);
    CHECK(std::abs(gradient[i] - narrow) <= 2e-5 * size);
  }
}

std::vector<std::string> told(Run& run, log::Role role) {
  std::vector<std::string> names;
  autograd::Tape tape(*run.backend, run.parameters, true);
  tape.watch([&](log::Role of, const std::string& name, const backend::Tensor& tensor, double) {
    REQUIRE(tensor);
    if (of == role) names.push_back(name);
  });
  run.loss(tape);
  tape.backward(1, false);
  return names;
}

TEST_CASE("gradients of every network are slopes of its loss", "[sim][tape]") {
  for (Case one : cases()) {
    if (one.network == "tinyssd-all-anchors") continue;  // its loss is tinyssd's, divided
    const bool slow = one.network == "tinyssd" || one.network == "resnet20";
    if (slow) one.batch /= 2;
    INFO(one.network);
    Run run(one, backend::make_reference_backend(), "fp32");
    run.backward();
    const std::vector<autograd::Parameter*> trained = run.parameters.trained();
    std::size_t compared = 0, kinks = 0;
    for (std::size_t i = 0; i<trained.size(); i += trained.size()> 40 ? 4 : 1) {
      compare_slopes(run, *trained[i], slow ? 1 : 3, compared, kinks);
    }
    CHECK(compared > 8 * kinks);
  }
}

TEST_CASE("gradients in binary32 are those of the reference", "[sim][tape]") {
  for (const Case& one : cases()) {
    Run exact(one, backend::make_reference_backend(), "fp32"), found(one, cpu(), "fp32");
    INFO(one.network);
    const double wanted = exact.backward();
    CHECK(found.backward() == Approx(wanted).epsilon(1e-6));
    const auto gradients = found.gradients();
    REQUIRE_FALSE(gradients.empty());
    for (autograd::Parameter* parameter : exact.parameters.trained()) {
      INFO(parameter->name);
      CHECK(relative_error(gradients.at(parameter->name),
                           backend::reference::values(parameter->gradient)) < 1e-5);
    }
  }
}

TEST_CASE("networks have the same bits on one and two threads", "[sim][tape]") {
  for (const char* precision : {"fp32", "fp16", "mixed", "bf16", "mixed-bf16"}) {
    for (const Case& one : cases()) {
      INFO(one.network << " " << precision);
      Run a(one, cpu(1), precision), b(one, cpu(2), precision);
      CHECK(a.backward(1024) == b.backward(1024));
      const auto left = a.gradients(), right = b.gradients();
      REQUIRE(left.size() == right.size());
      for (const auto& [name, values] : left) {
        INFO(name);
        REQUIRE(values.size() == right.at(name).size());
        std::size_t different = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
          different += std::bit_cast<std::uint32_t>(values[i]) !=
                       std::bit_cast<std::uint32_t>(right.at(name)[i]);
        }
        CHECK(different == 0);
      }
    }
  }
}

TEST_CASE("a power of two as loss scale multiplies every gradient in binary32", "[sim][tape]") {
  for (const Case& one : cases()) {
    INFO(one.network);
    Run plain(one, cpu(), "fp32"), scaled(one, cpu(), "fp32");
    plain.backward(1);
    scaled.backward(0x1p10);
    const auto wanted = plain.gradients(), found = scaled.gradients();
    for (autograd::Parameter* parameter : scaled.parameters.trained()) {
      INFO(parameter->name);
      CHECK(parameter->gradient_scale == 0x1p10);
      const Floats &a = wanted.at(parameter->name), &b = found.at(parameter->name);
      std::size_t different = 0;
      for (std::size_t i = 0; i < a.size(); ++i) different += b[i] != a[i] * 0x1p10F;
      CHECK(different == 0);
    }
  }
}

TEST_CASE("factors of layers go into gradients and their scales alike", "[sim][tape]") {
  for (const Case& one : cases()) {
    INFO(one.network);
    Run plain(one, backend::make_reference_backend(), "fp32"),
        layers(one, backend::make_reference_backend(), "fp32");
    plain.backward(4);
    std::size_t asked = 0;
    layers.backward(
        4, false,
        [&](const std::string& name, const backend::Tensor&, const backend::Tensor&, double) {
          ++asked;
          return name.size() % 2 == 0 ? 2.0 : 8.0;
        });
    CHECK(asked > 0);
    std::set<double> scales;
    for (std::size_t i = 0; i < plain.parameters.trained().size(); ++i) {
      const autograd::Parameter &a = *plain.parameters.trained()[i],
                                &b = *layers.parameters.trained()[i];
      INFO(a.name);
      scales.insert(b.gradient_scale);
      std::vector<double> unscaled(backend::reference::values(b.gradient).begin(),
                                   backend::reference::values(b.gradient).end());
      for (double& value : unscaled) value *= a.gradient_scale / b.gradient_scale;
      CHECK(relative_error(unscaled, backend::reference::values(a.gradient)) < 1e-12);
    }
    CHECK(scales.size() > 1);
  }
}

TEST_CASE("gradients of different scales meet at the smaller one", "[sim][tape]") {
  for (const bool small_first : {false, true}) {
    auto backend = backend::make_reference_backend();
    autograd::Parameters parameters(*backend, precision_of("fp32"), 1);
    autograd::Tape tape(*backend, parameters, true);
    tape.scale_layers(
        [&](const std::string& name, const backend::Tensor&, const backend::Tensor&, double scale) {
          CHECK(scale == 4);
          return (name == "first") == small_first ? 2.0 : 8.0;
        });
    const backend::Tensor one = tensor_of(*backend, {1, 1}, Dtype::f32, Floats{1});
    const autograd::Tape::Value x = tape.dense("layer", tape.input(one), 1);
    const autograd::Tape::Value sum =
        tape.add("sum", tape.dense("first", x, 4), tape.dense("second", x, 4));
    tape.cross_entropy("loss", sum, std::vector<std::int32_t>{1}, 1);
    tape.backward(4, false);
    for (const autograd::Parameter* parameter : parameters.trained()) {
      INFO(parameter->name);
      CHECK(parameter->gradient_scale == (parameter->name.starts_with("layer") ? 8 : 4));
    }
  }
}

TEST_CASE("gradients add where they are asked to, whatever scale they carry", "[sim][tape]") {
  for (const Case& one : cases()) {
    INFO(one.network);
    Run once(one, backend::make_reference_backend(), "fp32"),
        thrice(one, backend::make_reference_backend(), "fp32");
    once.backward(2);
    thrice.backward(8);
    thrice.backward(8, true);
    thrice.backward(2, true);
    for (std::size_t i = 0; i < once.parameters.trained().size(); ++i) {
      const autograd::Parameter &a = *once.parameters.trained()[i],
                                &b = *thrice.parameters.trained()[i];
      INFO(a.name);
      CHECK(b.gradient_scale == 2);
      std::vector<double> third(backend::reference::values(b.gradient).begin(),
                                backend::reference::values(b.gradient).end());
      for (double& value : third) value /= 3;
      CHECK(relative_error(third, backend::reference::values(a.gradient)) < 1e-12);
    }
    thrice.backward(2);  // and replace what was there where they are not
    const auto wanted = once.gradients();
    for (const auto& [name, values] : thrice.gradients()) {
      INFO(name);
      CHECK(values == wanted.at(name));
    }
  }
}

TEST_CASE("each further use of a value rounds the sum of its gradients", "[sim][tape]") {
  auto backend = cpu();
  autograd::Parameters parameters(*backend, precision_of("fp16"), 1);
  autograd::Tape tape(*backend, parameters, true);
  const backend::Tensor one = tensor_of(*backend, {1, 1}, Dtype::f16, Floats{1});
  const autograd::Tape::Value x = tape.dense("layer", tape.input(one), 1, false);
  // Passes on `weight` of a gradient of 1, 1, 1, 1.
  const auto use = [&](float weight, const char* name) {
    const autograd::Tape::Value y = tape.dense(name, x, 4, false);
    backend->set(
        parameters.at(std::string(name) + ".weight", {4, 1}, autograd::Initial::zeros, 1).weight,
        Floats{weight, 0, 0, 0});
    return y;
  };
  const auto gradient = [&](autograd::Tape::Value a, autograd::Tape::Value b,
                            autograd::Tape::Value c) {
    const autograd::Tape::Value sum = tape.add("sum", tape.add("ab", a, b), c);
    tape.smooth_l1("loss", sum, Floats{-10, -10, -10, -10}, std::vector<std::uint8_t>{1}, 1);
    tape.backward(1, false);
    return backend->get(
        parameters.at("layer.weight", {1, 1}, autograd::Initial::zeros, 1).gradient);
  };
  // The last use of the value is the first that gives it a gradient.
  SECTION("small ones first: 2^-11 + 2^-11 + 1") {
    const autograd::Tape::Value a = use(1, "a"), b = use(0x1p-11F, "b"), c = use(0x1p-11F, "c");
    CHECK(gradient(a, b, c) == Floats{1 + 0x1p-10F});
  }
  SECTION("large one first: 1 + 2^-11 is 1 again") {
    const autograd::Tape::Value c = use(0x1p-11F, "c"), b = use(0x1p-11F, "b"), a = use(1, "a");
    CHECK(gradient(a, b, c) == Floats{1});
  }
}

TEST_CASE("a watch is told of every named value, its gradient and every weight gradient",
          "[sim][tape]") {
  Run run({"lenet", std::make_shared<Noise>(backend::Shape{8, 8, 1})}, cpu(), "mixed");
  const std::vector<std::string> forward = {"conv1", "relu1", "pool1", "conv2", "relu2",
                                            "pool2", "fc1",   "relu3", "fc2"};
  CHECK(told(run, log::Role::activation) == forward);
  CHECK(told(run, log::Role::activation_grad) ==
        std::vector<std::string>(forward.rbegin(), forward.rend()));
  CHECK(told(run, log::Role::weight_grad) ==
        std::vector<std::string>{"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias",
                                 "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"});
}

TEST_CASE("a watch is told of the gates of all time steps at once", "[sim][tape]") {
  Run run({"charlstm", std::shared_ptr<data::Data>(data::open_data("text", 1)), 2}, cpu(), "fp32");
  autograd::Tape tape(*run.backend, run.parameters, true);
  backend::Shape shape;
  Floats gates;
  tape.watch(
      [&](log::Role role, const std::string& name, const backend::Tensor& tensor, double scale) {
        if (role != log::Role::activation_grad || name != "lstm.gates") return;
        CHECK(shape.empty());
        CHECK(scale == 16);
        shape = tensor.shape;
        gates = run.backend->get(tensor);
      });
  run.loss(tape);
  tape.backward(16, false);
  CHECK(shape == backend::Shape{1, 64, 512});
  // The bias gradient is the sum of the gates' over time steps and windows.
  const auto gradients = run.gradients();
  std::vector<double> sums(512);
  for (std::size_t i = 0; i < gates.size(); ++i) sums[i % 512] += double{gates[i]};
  CHECK(relative_error(gradients.at("lstm.bias_ih_l0"), sums) < 1e-5);
}

TEST_CASE("a weight that is no part of the loss has a gradient of zero", "[sim][tape]") {
  auto backend = cpu();
  autograd::Parameters parameters(*backend, precision_of("fp32"), 1);
  autograd::Parameter& apart = parameters.at("apart.weight", {2}, autograd::Initial::ones, 1);
  backend->fill(apart.gradient, 3);
  autograd::Tape tape(*backend, parameters, true);
  const backend::Tensor one = tensor_of(*backend, {1, 1}, Dtype::f32, Floats{1});
  tape.cross_entropy("loss", tape.dense("fc", tape.input(one), 2), std::vector<std::int32_t>{1}, 1);
  tape.backward(1, false);
  CHECK(backend->get(apart.gradient) == Floats{0, 0});
}

TEST_CASE("a tape that is not for training has a loss and no backward pass", "[sim][tape]") {
  Run run({"mlp", std::shared_ptr<data::Data>(data::open_data("blobs", 1))}, cpu(), "fp32");
  autograd::Tape tape(*run.backend, run.parameters, false);
  CHECK(run.loss(tape) == run.loss());
  CHECK_THROWS_AS(tape.backward(1, false), std::logic_error);
}

}  // namespace test_tape
