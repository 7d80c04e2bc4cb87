// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "sim/operation.hpp"

namespace test_pool {

using namespace sim_test;

Operation pooling(const backend::Pool& pool, const backend::Shape& x) {
  Operation operation;
  operation.inputs = {distinct_input(x, 1)};
  operation.forward = [pool](backend::Backend& backend, Dtype dtype, Tensors& in) {
    const backend::Shape& from = in[0].shape;
    Tensors out{backend.make({from[0], pool.out(from[1]), pool.out(from[2]), from[3]}, dtype)};
    backend.pool_forward(pool, in[0], out[0]);
    return out;
  };
  operation.backward = [pool](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors& out,
                              Tensors& up) {
    Tensors gradients{backend.make(in[0].shape, dtype)};
    backend.fill(gradients[0], 9);  // what was there does not count
    backend.pool_backward(pool, in[0], out[0], up[0], gradients[0]);
    return gradients;
  };
  return operation;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("Pooling: gradients, the reference, threads, one rounding") {
  for (const backend::Pool::Kind kind : {backend::Pool::Kind::max, backend::Pool::Kind::average}) {
    CAPTURE(int(kind));
    check(pooling({kind, 2, 2}, {2, 4, 4, 3}), pooling({kind, 2, 2}, {5, 10, 12, 16}));
    check(pooling({kind, 3, 2}, {1, 7, 6, 2}), pooling({kind, 3, 2}, {3, 15, 15, 8}));
    check(pooling({kind, 3, 1}, {1, 5, 5, 2}), pooling({kind, 8, 8}, {3, 8, 8, 64}));
  }
}

TEST_CASE("Largest values: the first of equals gets the gradient, a NaN counts as largest") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    // Four windows beside each other.
    const backend::Tensor x = tensor_of(*backend, {1, 2, 8, 1}, Dtype::f32,
                                        Floats{1, 3, kNan, 7, -kInfinity, -kInfinity, 0, -1,  //
                                               3, 3, 8, kNan, -kInfinity, -kInfinity, -2, 0});
    backend::Tensor y = backend->make({1, 1, 4, 1}, Dtype::f32),
                    dx = backend->make(x.shape, Dtype::f32);
    const backend::Tensor dy = tensor_of(*backend, y.shape, Dtype::f32, Floats{1, 2, 4, 8});
    const backend::Pool pool{backend::Pool::Kind::max, 2, 2};
    backend->pool_forward(pool, x, y);
    const Floats out = backend->get(y);
    CHECK(out[0] == 3);
    CHECK(std::isnan(out[1]));
    CHECK(out[2] == -kInfinity);
    CHECK(out[3] == 0);
    backend->pool_backward(pool, x, y, dy, dx);
    CHECK(backend->get(dx) == Floats{0, 1, 2, 0, 4, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  }
}

}  // namespace test_pool
