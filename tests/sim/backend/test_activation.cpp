// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/operation.hpp"

namespace test_activation {

using namespace sim_test;

Operation relu(const backend::Shape& shape) {
  Operation operation;
  operation.inputs = {distinct_input(shape, 1)};
  operation.forward = [](backend::Backend& backend, Dtype dtype, Tensors& in) {
    Tensors out{backend.make(in[0].shape, dtype)};
    backend.relu_forward(in[0], out[0]);
    return out;
  };
  operation.backward = [](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors& out,
                          Tensors& up) {
    Tensors gradients{backend.make(in[0].shape, dtype)};
    backend.relu_backward(out[0], up[0], gradients[0]);
    return gradients;
  };
  return operation;
}

/// (a + b) * factor; the gradient by multiply alone.
Operation add_and_multiply(const backend::Shape& shape, double factor) {
  Operation operation;
  operation.inputs = {normal_input(shape, 1), normal_input(shape, 2)};
  operation.forward = [factor](backend::Backend& backend, Dtype dtype, Tensors& in) {
    backend::Tensor sum = backend.make(in[0].shape, Dtype::f32);
    backend.add(in[0], in[1], sum);
    Tensors out{backend.make(sum.shape, dtype)};
    backend.multiply(sum, factor, out[0]);
    return out;
  };
  operation.backward = [factor](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&,
                                Tensors& up) {
    Tensors gradients{backend.make(in[0].shape, dtype), backend.make(in[0].shape, dtype)};
    backend.multiply(up[0], factor, gradients[0]);
    backend.multiply(up[0], factor, gradients[1]);
    return gradients;
  };
  return operation;
}

Operation join(std::int64_t n, std::int64_t c) {
  Operation operation;
  operation.inputs = {normal_input({n, 3, c}, 1), normal_input({n, 1, c}, 2),
                      normal_input({n, 5, c}, 3)};
  operation.forward = [](backend::Backend& backend, Dtype dtype, Tensors& in) {
    Tensors out{backend.make({in[0].shape[0], 9, in[0].shape[2]}, dtype)};
    backend.join(in, out[0]);
    return out;
  };
  operation.backward = [](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&,
                          Tensors& up) {
    Tensors gradients;
    for (const backend::Tensor& part : in) gradients.push_back(backend.make(part.shape, dtype));
    backend.split(up[0], gradients);
    return gradients;
  };
  return operation;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("ReLU: gradients, the reference, threads, one rounding") {
  check(relu({4, 3}), relu({3, 99, 111}));
}

TEST_CASE("Addition and multiplication: gradients, the reference, threads, one rounding") {
  check(add_and_multiply({4, 3}, 0.75), add_and_multiply({3, 99, 111}, 1.0 / 3));
}

TEST_CASE("Join and split: gradients, the reference, threads, one rounding") {
  check(join(2, 2), join(31, 17));
}

TEST_CASE("A join lies item by item, part by part") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    const Tensors parts{tensor_of(*backend, {2, 1, 2}, Dtype::f32, Floats{1, 2, 7, 8}),
                        tensor_of(*backend, {2, 2, 2}, Dtype::f32,  //
                                  Floats{3, 4, 5, 6, 9, 10, 11, 12})};
    backend::Tensor y = backend->make({2, 3, 2}, Dtype::f32);
    backend->join(parts, y);
    CHECK(backend->get(y) == Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  }
}

TEST_CASE("ReLU lets a NaN through, and a gradient only where its output is not zero") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    const backend::Tensor x = tensor_of(*backend, {4}, Dtype::f32, Floats{kNan, 0, -1, kInfinity});
    backend::Tensor y = backend->make({4}, Dtype::f32), dx = backend->make({4}, Dtype::f32);
    backend->relu_forward(x, y);
    const Floats out = backend->get(y);
    CHECK(std::isnan(out[0]));
    CHECK((out[1] == 0 && out[2] == 0 && out[3] == kInfinity));
    const backend::Tensor dy = tensor_of(*backend, {4}, Dtype::f32, Floats{2, kInfinity, kNan, 3});
    backend->relu_backward(y, dy, dx);
    CHECK(backend->get(dx) == Floats{2, 0, 0, 3});
  }
}

TEST_CASE("A sum in binary16 overflows to infinity at 65520") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  const backend::Tensor a = tensor_of(*backend, {3}, Dtype::f16, Floats{65504, 65504, 2048}),
                        b = tensor_of(*backend, {3}, Dtype::f16, Floats{15.9921875F, 16, 1});
  backend::Tensor y = backend->make({3}, Dtype::f16);
  backend->add(a, b, y);
  CHECK(backend->get(y) == Floats{65504, kInfinity, 2048});
}

TEST_CASE("Tensors of different sizes are refused") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::Tensor a = backend->make({3}, Dtype::f32), b = backend->make({4}, Dtype::f32);
  CHECK_THROWS_AS(backend->add(a, b, a), std::invalid_argument);
  CHECK_THROWS_AS(backend->relu_forward(a, b), std::invalid_argument);
  CHECK_THROWS_AS(backend->multiply(a, 2, b), std::invalid_argument);
}

}  // namespace test_activation
