// SPDX-License-Identifier: Apache-2.0
// A report, which cannot fail: how the device rounds a bias, and a weight gradient that is added
// up.
#include <random>

#include "catch.hpp"
#include "cuda/device_backend.hpp"
#include "cuda/roundings.hpp"
#include "halfscope/array/array.hpp"

namespace halfscope::test::test_cudnn_added {
namespace {

using sim::backend::Tensor;
using Floats = std::vector<float>;

Floats drawn(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw;
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = draw(random);
  quantise(kBinary16, values);
  return values;
}

struct Dense {
  std::int64_t n, c, k;
};

Tensor made(sim::backend::Backend& device, const sim::backend::Shape& shape, const Floats& values) {
  Tensor tensor = device.allocate_uninitialized(shape, Dtype::f16);
  device.set(tensor, values);
  return tensor;
}

/// y = x w^T + b, and dw = 0.5 + y^T x with y = x's first columns of another draw.
void tell_of(sim::backend::Backend& device, const Dense& e) {
  const Floats x = drawn(e.n * e.c, 1), w = drawn(e.k * e.c, 2), b = drawn(e.k, 3),
               dy = drawn(e.n * e.k, 4);
  Tensor y = device.allocate_uninitialized({e.n, e.k}, Dtype::f16),
         dw = device.allocate_uninitialized({e.k, e.c}, Dtype::f16);
  device.dense_forward(made(device, {e.n, e.c}, x), made(device, {e.k, e.c}, w),
                       made(device, {e.k}, b), y);
  device.fill(dw, 0.5F);
  device.dense_weight_gradient(made(device, {e.n, e.c}, x), made(device, {e.n, e.k}, dy), dw, true);
  const Floats got_y = device.get(y), got_dw = device.get(dw);
  const auto at = [](const Floats& values, std::int64_t row, std::int64_t width,
                     std::int64_t column) {
    return double{values[static_cast<std::size_t>(row * width + column)]};
  };
  Roundings bias, gradient;
  for (std::int64_t k = 0; k < e.k; ++k) {
    for (std::int64_t n = 0; n < e.n; ++n) {
      double sum = 0;
      for (std::int64_t c = 0; c < e.c; ++c) sum += at(x, n, e.c, c) * at(w, k, e.c, c);
      bias.count(at(got_y, n, e.k, k), sum, at(b, 0, e.k, k));
    }
    for (std::int64_t c = 0; c < e.c; ++c) {
      double sum = 0;
      for (std::int64_t n = 0; n < e.n; ++n) sum += at(x, n, e.c, c) * at(dy, n, e.k, k);
      gradient.count(at(got_dw, k, e.c, c), sum, 0.5);
    }
  }
  const std::string sizes =
      std::to_string(e.n) + " x " + std::to_string(e.c) + " to " + std::to_string(e.k);
  bias.tell("dense layer's bias, " + sizes);
  gradient.tell("dense layer's weight gradient, " + sizes);
}

TEST_CASE("report: how a bias and an added gradient are rounded", "[gpu]") {
  const auto device = device_backend();
  if (!device) return;
  for (const Dense& e : {Dense{32, 64, 120}, Dense{32, 120, 10}, Dense{64, 64, 64},
                         Dense{128, 512, 256}, Dense{96, 1000, 77}, Dense{64, 2048, 1000}}) {
    tell_of(*device, e);
  }
}

}  // namespace
}  // namespace halfscope::test::test_cudnn_added
