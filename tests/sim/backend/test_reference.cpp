// SPDX-License-Identifier: Apache-2.0
// The reference: its sums against exact ones, its convolution against a plain loop in quad
// precision, its gradients against finite differences.
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <limits>
#include <stdexcept>

#include "sim/backend/reference/sums.hpp"
#include "sim/operation.hpp"

namespace test_reference {

using namespace sim_test;
using Quad = boost::multiprecision::cpp_bin_float_quad;

struct Sizes {
  backend::Convolution conv;
  std::int64_t n, h, w, c, k;
  backend::Shape x() const { return {n, h, w, c}; }
  backend::Shape weight() const { return {k, conv.kernel, conv.kernel, c}; }
  backend::Shape y() const { return {n, conv.out(h), conv.out(w), k}; }
};

const std::vector<Sizes> kSizes = {{{3, 1, 1}, 2, 4, 5, 2, 3}, {{3, 2, 1}, 2, 5, 6, 2, 3},
                                   {{1, 2, 0}, 2, 5, 4, 3, 2}, {{5, 1, 0}, 1, 6, 7, 1, 2},
                                   {{3, 3, 2}, 1, 7, 7, 2, 1}, {{2, 2, 0}, 1, 5, 5, 2, 2}};

/// What y[n, p, q, k] is.
Quad convolved(const Sizes& z, const std::vector<Floats>& in, std::int64_t index) {
  const backend::Shape y = z.y();
  const std::int64_t k = index % y[3], q = index / y[3] % y[2], p = index / y[3] / y[2] % y[1],
                     n = index / y[3] / y[2] / y[1], size = z.conv.kernel;
  Quad sum = in[2][std::size_t(k)];
  for (std::int64_t tap = 0; tap < size * size * z.c; ++tap) {
    const std::int64_t c = tap % z.c, s = tap / z.c % size, r = tap / z.c / size;
    const std::int64_t h = p * z.conv.stride + r - z.conv.padding,
                       w = q * z.conv.stride + s - z.conv.padding;
    if (h < 0 || h >= z.h || w < 0 || w >= z.w) continue;
    sum += Quad(in[0][std::size_t(((n * z.h + h) * z.w + w) * z.c + c)]) *
           in[1][std::size_t(k * size * size * z.c + tap)];
  }
  return sum;
}

Operation convolution(const Sizes& z) {
  Operation operation;
  operation.inputs = {normal_input(z.x(), 1), normal_input(z.weight(), 2), normal_input({z.k}, 3)};
  operation.forward = [z](backend::Backend& backend, Dtype dtype, Tensors& in) {
    Tensors out{backend.make(z.y(), dtype)};
    backend.conv_forward(z.conv, in[0], in[1], in[2], out[0]);
    return out;
  };
  operation.backward = [z](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&,
                           Tensors& up) {
    Tensors d;
    for (const backend::Tensor& x : in) d.push_back(backend.make(x.shape, dtype));
    backend.conv_data_gradient(z.conv, up[0], in[1], d[0]);
    backend.conv_weight_gradient(z.conv, in[0], up[0], d[1], false);
    backend.bias_gradient(up[0], d[2], false);
    return d;
  };
  return operation;
}

/// x of three dimensions: all but the first are features.
Operation dense() {
  Operation operation;
  operation.inputs = {normal_input({3, 2, 4}, 1), normal_input({5, 8}, 2), normal_input({5}, 3)};
  operation.forward = [](backend::Backend& backend, Dtype dtype, Tensors& in) {
    Tensors out{backend.make({3, 5}, dtype)};
    backend.dense_forward(in[0], in[1], in[2], out[0]);
    return out;
  };
  operation.backward = [](backend::Backend& backend, Dtype dtype, Tensors& in, Tensors&,
                          Tensors& up) {
    Tensors d;
    for (const backend::Tensor& x : in) d.push_back(backend.make(x.shape, dtype));
    backend.dense_data_gradient(up[0], in[1], d[0]);
    backend.dense_weight_gradient(in[0], up[0], d[1], false);
    backend.bias_gradient(up[0], d[2], false);
    return d;
  };
  return operation;
}

TEST_CASE("Compensated sums are as accurate as twice the precision gives") {
  backend::reference::Sum cancelling;
  for (const double x : {1e16, 1.0, 1e-10, -1e16}) cancelling.add(x);
  CHECK(cancelling.value() == 1.0 + 1e-10);
  backend::reference::Sum products;
  products.add_product(1 + 0x1p-30, 1 + 0x1p-30);  // 1 + 2^-29 + 2^-60
  products.add(-1 - 0x1p-29);
  CHECK(products.value() == 0x1p-60);

  // Random products of condition about 1e20: binary64 alone has no digit right.
  std::mt19937_64 random(1);
  std::normal_distribution<double> draw;
  backend::reference::Sum sum;
  double high = 0, low = 0;
  Quad exact = 0;
  const auto add = [&](double a, double b) {
    sum.add_product(a, b);
    backend::reference::add_products(a, &b, &high, &low, 1);
    exact += Quad(a) * b;
  };
  for (int i = 0; i < 1000; ++i) {
    const double a = draw(random) * 1e10, b = draw(random) * 1e10;
    add(a, b);
    add(draw(random), 1);
    add(-a, b);
  }
  CHECK(std::abs(double((Quad(sum.value()) - exact) / exact)) < 1e-10);
  CHECK(backend::reference::sum_of(high, low) == sum.value());
}

TEST_CASE("A compensated sum that meets an infinity or a NaN has the plain one's value") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  backend::reference::Sum sum;
  sum.add(1);
  sum.add_product(kInfinity, 2);
  CHECK(sum.value() == kInfinity);
  sum.add_product(-kInfinity, 1);
  CHECK(std::isnan(sum.value()));
  double high = 0, low = 0;
  const double b = -3;
  backend::reference::add_products(kInfinity, &b, &high, &low, 1);
  CHECK(backend::reference::sum_of(high, low) == -kInfinity);
}

TEST_CASE("Convolution is the plain loop in quad precision, rounded") {
  for (const Sizes& z : kSizes) {
    CAPTURE(z.conv.kernel, z.conv.stride, z.conv.padding);
    backend::reference::ReferenceBackend backend;
    Operation operation = convolution(z);
    std::vector<Floats> values;
    for (const Input& input : operation.inputs) values.push_back(input.values);
    const Results results = run(backend, operation, Dtype::f32, Dtype::f32);
    const std::span<const double> y = backend::reference::values(results.forward[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      CHECK(y[i] == double(convolved(z, values, std::int64_t(i))));
    }
  }
}

TEST_CASE("Convolution: gradients against finite differences") {
  for (const Sizes& z : kSizes) {
    CAPTURE(z.conv.kernel, z.conv.stride, z.conv.padding);
    check_finite_differences(convolution(z));
  }
}

TEST_CASE("Dense layers: gradients against finite differences") {
  check_finite_differences(dense());
}

TEST_CASE("Weight gradients are added to what is there where asked") {
  backend::reference::ReferenceBackend backend;
  for (const Operation& operation : {convolution(kSizes[1]), dense()}) {
    Tensors in = inputs_of(backend, operation, Dtype::f32, Dtype::f32);
    Tensors out = operation.forward(backend, Dtype::f32, in);
    Tensors up = arriving(backend, out, Dtype::f32);
    const Tensors once = operation.backward(backend, Dtype::f32, in, out, up);
    backend::Tensor dw = backend.make(in[1].shape, Dtype::f32),
                    db = backend.make(in[2].shape, Dtype::f32);
    backend.fill(dw, 0.5F);
    backend.fill(db, 0.25F);
    if (operation.inputs[0].shape.size() == 4) {
      backend.conv_weight_gradient(kSizes[1].conv, in[0], up[0], dw, true);
    } else {
      backend.dense_weight_gradient(in[0], up[0], dw, true);
    }
    backend.bias_gradient(up[0], db, true);
    for (std::size_t i = 0; i < backend::reference::values(dw).size(); ++i) {
      CHECK(backend::reference::values(dw)[i] ==
            Approx(backend::reference::values(once[1])[i] + 0.5));
    }
    for (std::size_t i = 0; i < backend::reference::values(db).size(); ++i) {
      CHECK(backend::reference::values(db)[i] ==
            Approx(backend::reference::values(once[2])[i] + 0.25));
    }
  }
}

TEST_CASE("The reference rounds nothing to a tensor's dtype") {
  backend::reference::ReferenceBackend backend;
  const backend::Tensor x = tensor_of(backend, {2}, Dtype::f16, Floats{1e-30F, 1e30F});
  CHECK(backend.get(x) == Floats{1e-30F, 1e30F});
  backend::Tensor y = backend.make({2}, Dtype::f16);
  backend.multiply(x, 1.0 / 3, y);
  CHECK(backend::reference::values(y)[0] == double(1e-30F) * (1.0 / 3));
}

TEST_CASE("Facts, tables and moments of the reference") {
  backend::reference::ReferenceBackend backend;
  const Tensors gradients{tensor_of(backend, {2}, Dtype::f16, Floats{3, -4}),
                          tensor_of(backend, {2}, Dtype::f16, Floats{0, 0x1p-30F})};
  backend::GradientFacts facts = backend.facts(gradients);
  CHECK_FALSE(facts.nonfinite);
  CHECK(facts.max_abs == 4);
  CHECK(facts.sum_squares == 25 + 0x1p-60);
  CHECK(backend.moments(gradients[0]).sum_squares == 25);
  CHECK(backend.count(gradients[1]).total() == 2);
  const Tensors bad{gradients[0], tensor_of(backend, {2}, Dtype::f16,
                                            Floats{std::numeric_limits<float>::infinity(), 1})};
  facts = backend.facts(bad);
  CHECK(facts.nonfinite);
  CHECK(facts.max_abs == std::numeric_limits<double>::infinity());
  CHECK(facts.sum_squares == 26);
}

TEST_CASE("A tensor of another backend is refused") {
  backend::reference::ReferenceBackend exact;
  const auto cpu = backend::make_cpu_backend(backend::Accumulation::fp32, 1);
  backend::Tensor own = exact.make({2}, Dtype::f32), other = cpu->make({2}, Dtype::f32), none;
  CHECK_THROWS_AS(exact.relu_forward(other, own), std::invalid_argument);
  CHECK_THROWS_AS(exact.get(none), std::invalid_argument);
}

}  // namespace test_reference
