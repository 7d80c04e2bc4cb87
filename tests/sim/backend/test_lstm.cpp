// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/operation.hpp"

namespace test_lstm {

using namespace sim_test;

Operation cell(std::int64_t rows, std::int64_t width) {
  Operation operation;
  Input c = normal_input({rows, width}, 2);
  c.wide = true;
  operation.inputs = {normal_input({rows, 4 * width}, 1, 1.5), c};
  operation.forward = [](backend::Backend& backend, Dtype dtype, Tensors& in) {
    Tensors out{backend.make(in[1].shape, dtype), backend.make(in[1].shape, Dtype::f32)};
    backend.lstm_forward(in[0], in[1], out[1], out[0]);
    return out;
  };
  operation.backward = [](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors& out,
                          Tensors& up) {
    Tensors gradients{backend.make(in[0].shape, dtype), backend.make(in[1].shape, Dtype::f32)};
    backend.copy(up[1], gradients[1]);  // arrives as that of c, leaves as that of c_before
    backend.lstm_backward(in[0], in[1], out[1], up[0], gradients[1], gradients[0]);
    return gradients;
  };
  return operation;
}

TEST_CASE("LSTM cell: gradients, the reference, threads, one rounding") {
  check(cell(3, 5), cell(37, 61));
}

TEST_CASE("LSTM cell: gates lie in the order i, f, g, o") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  constexpr float kOpen = 40, kShut = -40;
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    const auto c_and_h = [&](const Floats& gates) {
      const backend::Tensor pre = tensor_of(*backend, {1, 4}, Dtype::f32, gates),
                            before = tensor_of(*backend, {1, 1}, Dtype::f32, Floats{0.5F});
      backend::Tensor c = backend->make({1, 1}, Dtype::f32), h = backend->make({1, 1}, Dtype::f32);
      backend->lstm_forward(pre, before, c, h);
      return Floats{backend->get(c)[0], backend->get(h)[0]};
    };
    const auto close = [](float x) { return Approx(x).margin(1e-6); };
    Floats found = c_and_h({kShut, kOpen, 1, kShut});  // keeps the cell, shows nothing
    CHECK(found[0] == close(0.5F));
    CHECK(found[1] == close(0));
    found = c_and_h({kOpen, kShut, 0.25F, kOpen});  // takes tanh(g), shows it
    CHECK(found[0] == close(std::tanh(0.25F)));
    CHECK(found[1] == close(std::tanh(std::tanh(0.25F))));
    found = c_and_h({-1e30F, 1e30F, -1e30F, 1e30F});  // no NaN at the ends
    CHECK(found[0] == close(0.5F));
    CHECK(found[1] == close(std::tanh(0.5F)));
  }
}

}  // namespace test_lstm
