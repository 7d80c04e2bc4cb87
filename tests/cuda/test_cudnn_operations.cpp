// SPDX-License-Identifier: Apache-2.0
// Every operation of the cuDNN backend against the same one emulated on the processor, from the
// same inputs, and in binary32 against the reference in binary64.
#include <array>
#include <random>

#include "cuda/device_backend.hpp"
#include "sim/operation.hpp"

namespace sim_test::test_cudnn_operations {

constexpr double kWide = 1e-5;  // relative error of binary32 results
/// Of narrow ones: two roundings apart at most, but where sums cancel.
double narrow_limit(Dtype dtype) { return dtype == Dtype::f16 ? 1e-3 : 8e-3; }

std::vector<double> exact_values(const backend::Tensor& tensor) {
  const auto values = backend::reference::values(tensor);
  return {values.begin(), values.end()};
}

void check_close(backend::Backend& device, const Tensors& found, backend::Backend& emulation,
                 const Tensors& wanted, double limit) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("result " << i);
    const Floats values = emulation.get(wanted[i]);
    CHECK(relative_error(device.get(found[i]), std::vector<double>(values.begin(), values.end())) <
          limit);
  }
}

/// `same`: results are the emulation's, bit by bit.
void check_on_device(const Operation& operation, bool same = false) {
  const auto device = test::device_backend();
  if (!device) return;
  backend::reference::ReferenceBackend exact;
  const auto emulation = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  const Results truth = run(exact, operation, Dtype::f32, Dtype::f32);
  const Results wide = run(*device, operation, Dtype::f32, Dtype::f32);
  const auto against_truth = [&](const Tensors& found, const Tensors& wanted) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      INFO("result " << i);
      CHECK(relative_error(device->get(found[i]), exact_values(wanted[i])) < kWide);
    }
  };
  against_truth(wide.forward, truth.forward);
  against_truth(wide.backward, truth.backward);
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    INFO(name_of(dtype));
    const Results found = run(*device, operation, dtype, dtype),
                  wanted = run(*emulation, operation, dtype, dtype),
                  again = run(*device, operation, dtype, dtype);
    if (same) {
      check_same_bits(*device, found.forward, *emulation, wanted.forward);
      check_same_bits(*device, found.backward, *emulation, wanted.backward);
    } else {
      const double limit = dtype == Dtype::f32 ? kWide : narrow_limit(dtype);
      check_close(*device, found.forward, *emulation, wanted.forward, limit);
      check_close(*device, found.backward, *emulation, wanted.backward, limit);
    }
    check_same_bits(*device, again.forward, *device, found.forward);  // deterministic
    check_same_bits(*device, again.backward, *device, found.backward);
  }
}

/// Gradients of x, w and b; the weight gradient is added to a copy of w.
Operation convolution(const backend::Convolution& conv, const backend::Shape& x, std::int64_t k,
                      bool bias) {
  const backend::Shape w = {k, conv.kernel, conv.kernel, x[3]};
  const backend::Shape y = {x[0], conv.out(x[1]), conv.out(x[2]), k};
  return {{normal_input(x, 1), normal_input(w, 2, 0.3), normal_input({k}, 3)},
          [=](backend::Backend& backend, Dtype dtype, Tensors& in) {
            backend::Tensor made = backend.allocate_uninitialized(y, dtype);
            backend.conv_forward(conv, in[0], in[1], bias ? in[2] : backend::Tensor{}, made);
            return Tensors{made};
          },
          [=](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&, Tensors& up) {
            backend::Tensor dx = backend.allocate_uninitialized(x, dtype),
                            dw = backend.allocate_uninitialized(w, dtype),
                            db = backend.allocate_uninitialized({k}, dtype),
                            added = backend.allocate_uninitialized(w, dtype);
            backend.conv_data_gradient(conv, up[0], in[1], dx);
            backend.conv_weight_gradient(conv, in[0], up[0], dw, false);
            backend.copy(in[1], added);
            backend.conv_weight_gradient(conv, in[0], up[0], added, true);
            backend.bias_gradient(up[0], db, false);
            return Tensors{dx, dw, db, added};
          }};
}

Operation dense(std::int64_t n, std::int64_t c, std::int64_t k, bool bias) {
  return {{normal_input({n, c}, 1), normal_input({k, c}, 2, 0.3), normal_input({k}, 3)},
          [=](backend::Backend& backend, Dtype dtype, Tensors& in) {
            backend::Tensor y = backend.allocate_uninitialized({n, k}, dtype);
            backend.dense_forward(in[0], in[1], bias ? in[2] : backend::Tensor{}, y);
            return Tensors{y};
          },
          [=](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&, Tensors& up) {
            backend::Tensor dx = backend.allocate_uninitialized({n, c}, dtype),
                            dw = backend.allocate_uninitialized({k, c}, dtype),
                            added = backend.allocate_uninitialized({k, c}, dtype),
                            db = backend.allocate_uninitialized({k}, dtype);
            backend.dense_data_gradient(up[0], in[1], dx);
            backend.dense_weight_gradient(in[0], up[0], dw, false);
            backend.copy(in[1], added);
            backend.dense_weight_gradient(in[0], up[0], added, true);
            backend.copy(in[2], db);
            backend.bias_gradient(up[0], db, true);
            return Tensors{dx, dw, added, db};
          }};
}

Operation pooling(const backend::Pool& pool, const backend::Shape& x) {
  const backend::Shape y = {x[0], pool.out(x[1]), pool.out(x[2]), x[3]};
  return {{distinct_input(x, 1)},
          [=](backend::Backend& backend, Dtype dtype, Tensors& in) {
            backend::Tensor made = backend.allocate_uninitialized(y, dtype);
            backend.pool_forward(pool, in[0], made);
            return Tensors{made};
          },
          [=](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors& out, Tensors& up) {
            backend::Tensor dx = backend.allocate_uninitialized(x, dtype);
            backend.pool_backward(pool, in[0], out[0], up[0], dx);
            return Tensors{dx};
          }};
}

/// ReLU, sums, products and conversions; joined and split.
Operation elementwise(std::int64_t n, std::int64_t a, std::int64_t b) {
  return {{normal_input({n, a, 3}, 1), normal_input({n, b, 3}, 2)},
          [=](backend::Backend& backend, Dtype dtype, Tensors& in) {
            backend::Tensor joined = backend.allocate_uninitialized({n, a + b, 3}, dtype),
                            positive = backend.allocate_uninitialized({n, a + b, 3}, dtype),
                            tripled = backend.allocate_uninitialized({n, a + b, 3}, dtype),
                            sum = backend.allocate_uninitialized({n, a + b, 3}, dtype);
            backend.join(in, joined);
            backend.relu_forward(joined, positive);
            backend.multiply(positive, 1.0 / 3, tripled);
            backend.add(joined, tripled, sum);
            return Tensors{joined, positive, tripled, sum};
          },
          [=](backend::Backend& backend, Dtype dtype, Tensors&, Tensors& out, Tensors& up) {
            backend::Tensor masked = backend.allocate_uninitialized({n, a + b, 3}, dtype),
                            wide = backend.allocate_uninitialized({n, a + b, 3}, Dtype::f32);
            backend.relu_backward(out[1], up[3], masked);
            Tensors parts = {backend.allocate_uninitialized({n, a, 3}, dtype),
                             backend.allocate_uninitialized({n, b, 3}, dtype)};
            backend.split(masked, parts);
            backend.copy(masked, wide);
            backend::Tensor back = backend.allocate_uninitialized({n, a + b, 3}, dtype),
                            filled = backend.allocate_uninitialized({n, b, 3}, dtype);
            backend.copy(wide, back);
            backend.fill(filled, 0.1F);
            return Tensors{parts[0], parts[1], back, filled};
          }};
}

Operation lstm(std::int64_t n, std::int64_t h) {
  return {{normal_input({n, 4 * h}, 1), {{n, h}, normal(n * h, 2), true}},
          [=](backend::Backend& backend, Dtype dtype, Tensors& in) {
            backend::Tensor c = backend.allocate_uninitialized({n, h}, Dtype::f32),
                            out = backend.allocate_uninitialized({n, h}, dtype);
            backend.lstm_forward(in[0], in[1], c, out);
            return Tensors{c, out};
          },
          [=](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors& out, Tensors& up) {
            backend::Tensor dc = backend.allocate_uninitialized({n, h}, Dtype::f32),
                            dgates = backend.allocate_uninitialized({n, 4 * h}, dtype);
            backend.copy(up[0], dc);
            backend.lstm_backward(in[0], in[1], out[0], up[1], dc, dgates);
            return Tensors{dc, dgates};
          }};
}

Operation losses(std::int64_t rows, std::int64_t classes) {
  std::mt19937 random(5);
  std::vector<std::int32_t> labels, ids;
  std::vector<std::uint8_t> mask;
  for (std::int64_t i = 0; i < rows; ++i) {
    labels.push_back(static_cast<std::int32_t>(random() % (classes + 1)) - 1);
    ids.push_back(static_cast<std::int32_t>(random() % 7));
    mask.push_back(random() % 2);
  }
  const Floats target = normal(rows * classes, 9, 2);
  return {
      {normal_input({rows, classes}, 1, 3), normal_input({7, classes}, 2)},
      [=](backend::Backend& backend, Dtype dtype, Tensors& in) {
        backend::Tensor crossed = backend.allocate_uninitialized({rows, classes}, dtype),
                        smooth = backend.allocate_uninitialized({rows, classes}, dtype),
                        embedded = backend.allocate_uninitialized({rows, classes}, dtype),
                        sums = backend.make({2}, Dtype::f32);
        const double cross = backend.softmax_cross_entropy(in[0], labels, 0.25, crossed);
        const double l1 = backend.smooth_l1(in[0], target, mask, 0.75, smooth);
        backend.set(sums, std::vector<float>{static_cast<float>(cross), static_cast<float>(l1)});
        backend.embed_forward(ids, in[1], embedded);
        return Tensors{crossed, smooth, embedded, sums};
      },
      [=](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&, Tensors& up) {
        backend::Tensor dtable = backend.allocate_uninitialized({7, classes}, dtype),
                        added = backend.allocate_uninitialized({7, classes}, dtype);
        backend.embed_backward(ids, up[2], dtable, false);
        backend.copy(in[1], added);
        backend.embed_backward(ids, up[2], added, true);
        return Tensors{dtable, added};
      }};
}

TEST_CASE("cudnn backend: convolutions, their gradients and their sums", "[gpu]") {
  check_on_device(convolution({5, 1, 2}, {2, 9, 7, 1}, 6, true));
  check_on_device(convolution({3, 1, 1}, {2, 6, 5, 3}, 4, false));
  check_on_device(convolution({3, 2, 1}, {3, 8, 8, 8}, 16, true));
  check_on_device(convolution({1, 2, 0}, {2, 8, 8, 8}, 8, false));
  check_on_device(convolution({7, 2, 3}, {1, 14, 14, 3}, 8, false));
}

TEST_CASE("cudnn backend: dense layers", "[gpu]") {
  check_on_device(dense(5, 7, 3, true));
  check_on_device(dense(16, 64, 24, false));
  check_on_device(dense(130, 9, 33, true));
}

TEST_CASE("cudnn backend: pooling", "[gpu]") {
  check_on_device(pooling({backend::Pool::Kind::max, 2, 2}, {2, 4, 6, 3}), true);
  check_on_device(pooling({backend::Pool::Kind::max, 3, 2}, {1, 7, 7, 2}));
  check_on_device(pooling({backend::Pool::Kind::max, 1, 2}, {2, 4, 4, 3}), true);
  check_on_device(pooling({backend::Pool::Kind::average, 4, 4}, {2, 4, 4, 5}));
}

TEST_CASE("cudnn backend: element by element the emulation's bits", "[gpu]") {
  check_on_device(elementwise(2, 1, 2), true);
  check_on_device(elementwise(3, 71, 40), true);  // packs, and what is left over
}

TEST_CASE("cudnn backend: of equal largest values the first has the gradient", "[gpu]") {
  for (const int kernel : {2, 3}) {
    Operation ties = pooling({backend::Pool::Kind::max, kernel, 2}, {2, 7, 7, 3});
    for (float& value : ties.inputs[0].values) value = value > 0 ? 1.0F : 0.0F;
    ties.inputs[0].values[5] = NAN;
    const auto device = test::device_backend();
    if (!device) return;
    const auto emulation = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
    for (const Dtype dtype : {Dtype::f32, Dtype::f16}) {
      const Results found = run(*device, ties, dtype, dtype),
                    wanted = run(*emulation, ties, dtype, dtype);
      check_same_bits(*device, found.backward, *emulation, wanted.backward);
    }
  }
}

TEST_CASE("cudnn backend: sums in binary16, where there are such", "[gpu]") {
  const auto device = test::device_backend(backend::Accumulation::fp16);
  if (!device) return;
  const auto emulation = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  for (const Operation& operation :
       {convolution({3, 1, 1}, {2, 6, 6, 8}, 8, true), dense(16, 32, 24, true)}) {
    const Results found = run(*device, operation, Dtype::f16, Dtype::f16),
                  wanted = run(*emulation, operation, Dtype::f16, Dtype::f16);
    check_close(*device, found.forward, *emulation, wanted.forward, 2e-2);
    check_close(*device, found.backward, *emulation, wanted.backward, 2e-2);
  }
}

TEST_CASE("cudnn backend: LSTM cells", "[gpu]") { check_on_device(lstm(3, 5)); }

TEST_CASE("cudnn backend: losses and embeddings", "[gpu]") {
  check_on_device(losses(5, 3));
  check_on_device(losses(70, 11));
}

}  // namespace sim_test::test_cudnn_operations
