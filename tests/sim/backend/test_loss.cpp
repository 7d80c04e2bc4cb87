// SPDX-License-Identifier: Apache-2.0
// Losses and embeddings.
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/operation.hpp"

namespace test_loss {

using namespace sim_test;

using Ids = std::vector<std::int32_t>;

Ids random_ids(std::size_t count, std::int32_t least, std::int32_t end, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::int32_t> draw(least, end - 1);
  Ids ids(count);
  for (std::int32_t& id : ids) id = draw(random);
  return ids;
}

/// A loss of its input and factor: the gradient's values are written into the tensor.
using Loss = std::function<double(backend::Backend&, const backend::Tensor& x, double factor,
                                  backend::Tensor& dx)>;

void check_loss_gradient(const Input& input, const Loss& loss) {
  backend::reference::ReferenceBackend backend;
  backend::Tensor x = tensor_of(backend, input.shape, Dtype::f32, input.values),
                  dx = backend.make(input.shape, Dtype::f32),
                  ignored = backend.make(input.shape, Dtype::f32);
  const auto slopes = finite_differences(backend::reference::values(x),
                                         [&] { return loss(backend, x, 1, ignored); });
  loss(backend, x, 1, dx);
  CHECK(relative_error(backend::reference::values(dx), slopes) < 1e-6);
}

void check_loss_cpu(const Input& input, const Loss& loss) {
  constexpr double kFactor = 1024.0 / 37;
  backend::reference::ReferenceBackend exact;
  const auto one = backend::make_cpu_backend(backend::Accumulation::fp32, 1),
             two = backend::make_cpu_backend(backend::Accumulation::fp32, 2);
  const auto run_on = [&](backend::Backend& backend, Dtype dtype, Dtype values_of,
                          backend::Tensor& dx) {
    const backend::Tensor x =
        tensor_of(backend, input.shape, dtype, rounded(values_of, input.values));
    dx = backend.make(input.shape, dtype);
    return loss(backend, x, kFactor, dx);
  };
  backend::Tensor wanted, found, again;
  const double wanted_loss = run_on(exact, Dtype::f32, Dtype::f32, wanted),
               found_loss = run_on(*one, Dtype::f32, Dtype::f32, found),
               again_loss = run_on(*two, Dtype::f32, Dtype::f32, again);
  CHECK(std::abs(found_loss - wanted_loss) < 1e-6 * wanted_loss);
  CHECK(relative_error(one->get(found), backend::reference::values(wanted)) < 1e-5);
  CHECK(again_loss == found_loss);
  check_same_bits(*two, {again}, *one, {found});
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    INFO("narrow: " << name_of(dtype));
    const double narrow_loss = run_on(*two, dtype, dtype, again),
                 wide_loss = run_on(*one, Dtype::f32, dtype, found);
    CHECK(narrow_loss == wide_loss);  // the loss itself is never narrow
    check_same_bits(*two, {again}, *one, {found});
  }
}

Loss cross_entropy(const Ids& labels) {
  return [labels](backend::Backend& backend, const backend::Tensor& x, double factor,
                  backend::Tensor& dx) {
    return backend.softmax_cross_entropy(x, labels, factor, dx);
  };
}

Loss smooth_l1(const Floats& target, const std::vector<std::uint8_t>& mask) {
  return [target, mask](backend::Backend& backend, const backend::Tensor& x, double factor,
                        backend::Tensor& dx) {
    return backend.smooth_l1(x, target, mask, factor, dx);
  };
}

TEST_CASE("Softmax and cross entropy: gradients, the reference, threads, one rounding") {
  check_loss_gradient(normal_input({7, 5}, 1, 2), cross_entropy(random_ids(7, -1, 5, 2)));
  check_loss_cpu(normal_input({7, 5}, 1, 2), cross_entropy(random_ids(7, -1, 5, 2)));
  check_loss_cpu(normal_input({1001, 10}, 3, 4), cross_entropy(random_ids(1001, -1, 10, 4)));
}

TEST_CASE("Smooth L1: gradients, the reference, threads, one rounding") {
  const auto targets = [](std::int64_t rows) {  // no difference is within 0.01 of a corner
    Floats target = normal(rows * 4, 5);
    const Floats x = normal(rows * 4, 6, 2);
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::abs(std::abs(x[i] - target[i]) - 1) < 0.01F) target[i] += 0.1F;
    }
    return smooth_l1(target, [&] {
      std::vector<std::uint8_t> mask;
      for (std::int64_t i = 0; i < rows; ++i) mask.push_back(i % 3 != 1);
      return mask;
    }());
  };
  check_loss_gradient(normal_input({6, 4}, 6, 2), targets(6));
  check_loss_cpu(normal_input({6, 4}, 6, 2), targets(6));
  check_loss_cpu(normal_input({9001, 4}, 6, 2), targets(9001));
}

TEST_CASE("Losses by hand, rows without a label or outside the mask have no part") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    const backend::Tensor logits =
        tensor_of(*backend, {3, 2}, Dtype::f32, Floats{0, 0, 5, 9, 1e4F, -1e4F});
    backend::Tensor d = backend->make({3, 2}, Dtype::f32);
    backend->fill(d, 7);
    const Ids labels{1, -1, 1};
    // log 2, none, 2e4: far beyond what exp() holds
    CHECK(backend->softmax_cross_entropy(logits, labels, 8, d) ==
          Approx(std::log(2.0) + 2e4).epsilon(1e-7));
    CHECK(backend->get(d) == Floats{4, -4, 0, 0, 8, -8});

    const backend::Tensor x =
        tensor_of(*backend, {2, 4}, Dtype::f32, Floats{1, 1.5F, -3, 0, 9, 9, 9, 9});
    backend::Tensor dx = backend->make({2, 4}, Dtype::f32);
    backend->fill(dx, 7);
    const Floats target{1, 1, 1, 1, 0, 0, 0, 0};
    const std::vector<std::uint8_t> mask{1, 0};
    CHECK(backend->smooth_l1(x, target, mask, 2, dx) == 0.125 + 3.5 + 0.5);
    CHECK(backend->get(dx) == Floats{0, 1, -2, -2, 0, 0, 0, 0});
  }
}

TEST_CASE("Cross entropy passes a NaN on, and an infinite logit is one") {
  const std::unique_ptr<backend::Backend> cpu = backend::make_cpu_backend(
                                              backend::Accumulation::fp32, 1),
                                          exact = backend::make_reference_backend();
  for (backend::Backend* backend : {cpu.get(), exact.get()}) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const backend::Tensor logits =
          tensor_of(*backend, {2, 3}, Dtype::f32, Floats{1, bad, 2, 0, 0, 0});
      backend::Tensor d = backend->make({2, 3}, Dtype::f32);
      CHECK(std::isnan(backend->softmax_cross_entropy(logits, Ids{0, 0}, 1, d)));
      CHECK(std::isnan(backend->get(d)[1]));
      CHECK(backend->get(d)[4] == Approx(1.0 / 3));
    }
  }
}

TEST_CASE("A gradient of the loss that leaves binary16 is infinite, one too small is zero") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  const backend::Tensor logits = tensor_of(*backend, {2, 2}, Dtype::f16, Floats{0, 0, 0, 17.5F});
  backend::Tensor d = backend->make({2, 2}, Dtype::f16);
  backend->softmax_cross_entropy(logits, Ids{0, 1}, 1, d);
  CHECK(backend->get(d) == Floats{-0.5F, 0.5F, 0, 0});  // exp(-17.5) is 0.84 * 2^-25
  backend->softmax_cross_entropy(logits, Ids{0, 1}, 131040, d);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(backend->get(d)[0] == -infinity);
  CHECK(backend->get(d)[2] == Approx(131040 * std::exp(-17.5)).epsilon(1e-3));
}

TEST_CASE("Embedding: gradients, the reference, threads, one rounding") {
  const auto embedding = [](const Ids& ids, const backend::Shape& table) {
    Operation operation;
    operation.inputs = {normal_input(table, 1)};
    operation.forward = [ids](backend::Backend& backend, Dtype dtype, Tensors& in) {
      Tensors out{backend.make({std::ssize(ids), in[0].shape[1]}, dtype)};
      backend.embed_forward(ids, in[0], out[0]);
      return out;
    };
    operation.backward = [ids](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&,
                               Tensors& up) {
      Tensors gradients{backend.make(in[0].shape, dtype)};
      backend.fill(gradients[0], 9);
      backend.embed_backward(ids, up[0], gradients[0], false);
      return gradients;
    };
    return operation;
  };
  check(embedding({3, 0, 3, 1}, {5, 3}), embedding(random_ids(999, 0, 61, 7), {61, 33}));
}

TEST_CASE("Embedding: gradients are added in one rounding, what is out of range is refused") {
  const auto backend = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::Tensor table = backend->make({3, 1}, Dtype::f16);
  backend->fill(table, 2048);
  const Ids ids{1, 1, 2};
  const backend::Tensor dy = tensor_of(*backend, {3, 1}, Dtype::f16, Floats{1, 1, 1});
  backend->embed_backward(ids, dy, table, true);
  CHECK(backend->get(table) == Floats{2048, 2050, 2048});  // 2048 + 1 + 1, and a tie to even

  backend::Tensor y = backend->make({1, 1}, Dtype::f16);
  CHECK_THROWS_AS(backend->embed_forward(Ids{3}, table, y), std::invalid_argument);
  CHECK_THROWS_AS(backend->embed_forward(Ids{-1}, table, y), std::invalid_argument);
  backend::Tensor d = backend->make({1, 2}, Dtype::f32);
  CHECK_THROWS_WITH(backend->softmax_cross_entropy(d, Ids{2}, 1, d),
                    Catch::Contains("label 2 is outside 0 to 1"));
}

}  // namespace test_loss
