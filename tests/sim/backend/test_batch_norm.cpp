// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "sim/operation.hpp"

namespace test_batch_norm {

using namespace sim_test;

backend::BatchNormParameters parameters_of(backend::Backend& backend, const backend::Tensor& gamma,
                                           const backend::Tensor& beta) {
  backend::BatchNormParameters parameters;
  parameters.gamma = gamma;
  parameters.beta = beta;
  parameters.running_mean = backend.make(gamma.shape, Dtype::f32);
  parameters.running_variance = backend.make(gamma.shape, Dtype::f32);
  backend.fill(parameters.running_variance, 1);
  return parameters;
}

/// Training; running statistics count as outputs, whose gradients do not arrive.
Operation batch_norm(const backend::Shape& shape, double mean) {
  const backend::Shape channels{shape.back()};
  Input gamma = normal_input(channels, 2, 0.3, 1), beta = normal_input(channels, 3);
  gamma.wide = beta.wide = true;
  Operation operation;
  operation.inputs = {normal_input(shape, 1, 2, mean), gamma, beta};
  operation.forward = [](backend::Backend& backend, Dtype dtype, Tensors& in) {
    backend::BatchNormParameters parameters = parameters_of(backend, in[1], in[2]);
    backend::BatchNormSaved saved;
    Tensors out{backend.make(in[0].shape, dtype)};
    backend.batch_norm_forward(in[0], parameters, false, saved, out[0]);
    return out;
  };
  operation.backward = [](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&,
                          Tensors& up) {
    backend::BatchNormParameters parameters = parameters_of(backend, in[1], in[2]);
    backend::BatchNormSaved saved;
    backend::Tensor y = backend.make(in[0].shape, dtype);
    backend.batch_norm_forward(in[0], parameters, false, saved, y);
    Tensors gradients{backend.make(in[0].shape, dtype), backend.make(in[1].shape, Dtype::f32),
                      backend.make(in[2].shape, Dtype::f32)};
    backend.batch_norm_backward(in[0], up[0], parameters, saved, gradients[0], gradients[1],
                                gradients[2], false);
    return gradients;
  };
  return operation;
}

TEST_CASE("Batch normalisation: gradients, the reference, threads, one rounding") {
  check(batch_norm({3, 2, 2, 5}, 0.5), batch_norm({16, 12, 11, 7}, 3));
}

TEST_CASE("Batch normalisation of dense layers") {
  check(batch_norm({6, 3}, 0), batch_norm({700, 33}, -1));
}

TEST_CASE("Batch normalisation: running statistics, the variance unbiased, and inference") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 2),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    // Two channels: 1, 2, 3, 6 (mean 3, biased variance 3.5) and four times 5.
    const backend::Tensor x =
        tensor_of(*backend, {2, 2, 1, 2}, Dtype::f32, Floats{1, 5, 2, 5, 3, 5, 6, 5});
    backend::Tensor gamma = tensor_of(*backend, {2}, Dtype::f32, Floats{2, 1}),
                    beta = tensor_of(*backend, {2}, Dtype::f32, Floats{10, 20}),
                    y = backend->make(x.shape, Dtype::f32);
    backend::BatchNormParameters parameters = parameters_of(*backend, gamma, beta);
    parameters.momentum = 0.25;
    parameters.epsilon = 0.5;
    backend::BatchNormSaved saved;
    backend->batch_norm_forward(x, parameters, false, saved, y);
    CHECK(backend->get(saved.mean) == Floats{3, 5});
    CHECK(backend->get(saved.inverse_deviation)[0] == 0.5F);
    CHECK(backend->get(y) == Floats{8, 20, 9, 20, 10, 20, 13, 20});
    CHECK(backend->get(parameters.running_mean) == Floats{0.75F, 1.25F});
    const Floats variance = backend->get(parameters.running_variance);
    CHECK(variance[0] == Approx(0.75 + 0.25 * 14 / 3).epsilon(1e-6));
    CHECK(variance[1] == 0.75F);

    backend->set(parameters.running_mean, Floats{1, 4});
    backend->set(parameters.running_variance, Floats{3.5F, 15.5F});
    backend->batch_norm_forward(x, parameters, true, saved, y);
    CHECK(backend->get(y) == Floats{10, 20.25F, 11, 20.25F, 12, 20.25F, 15, 20.25F});
    CHECK(backend->get(parameters.running_mean) == Floats{1, 4});  // as it was
  }
}

TEST_CASE("Batch normalisation: gradients of parameters are added, what is passed on is not") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    const Operation operation = batch_norm({4, 3}, 0);
    Tensors in = inputs_of(*backend, operation, Dtype::f32, Dtype::f32);
    const Tensors out = operation.forward(*backend, Dtype::f32, in);
    const Tensors up = arriving(*backend, out, Dtype::f32);
    backend::BatchNormParameters parameters = parameters_of(*backend, in[1], in[2]);
    backend::BatchNormSaved saved;
    backend::Tensor y = backend->make(in[0].shape, Dtype::f32), dx = y, dgamma, dbeta;
    dgamma = backend->make({3}, Dtype::f32);
    dbeta = backend->make({3}, Dtype::f32);
    backend->batch_norm_forward(in[0], parameters, false, saved, y);
    backend->batch_norm_backward(in[0], up[0], parameters, saved, dx, dgamma, dbeta, false);
    const Floats once_x = backend->get(dx), once = backend->get(dgamma),
                 once_beta = backend->get(dbeta);
    backend->batch_norm_backward(in[0], up[0], parameters, saved, dx, dgamma, dbeta, true);
    CHECK(backend->get(dx) == once_x);
    for (std::size_t c = 0; c < 3; ++c) {
      CHECK(backend->get(dgamma)[c] == 2 * once[c]);
      CHECK(backend->get(dbeta)[c] == 2 * once_beta[c]);
    }
  }
}

TEST_CASE("Batch normalisation refuses one value a channel") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    backend::Tensor gamma = backend->make({3}, Dtype::f32),
                    x = backend->make({1, 1, 1, 3}, Dtype::f32);
    backend::BatchNormParameters parameters = parameters_of(*backend, gamma, gamma);
    backend::BatchNormSaved saved;
    backend::Tensor y = backend->make(x.shape, Dtype::f32);
    CHECK_THROWS_AS(backend->batch_norm_forward(x, parameters, false, saved, y),
                    std::invalid_argument);
  }
}

}  // namespace test_batch_norm
