// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of the cuDNN backend: the emulation's bits, forward, in inference and
// backward. NaNs are equal whatever their payload.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/device_backend.hpp"
#include "halfscope/array/array.hpp"
#include "sim/backend/backend.hpp"

namespace halfscope::test::test_cudnn_batch_norm {
namespace {

using sim::backend::Backend;
using sim::backend::Shape;
using sim::backend::Tensor;
using Floats = std::vector<float>;

struct Case {
  Shape shape;
  Dtype dtype = Dtype::f32;
  bool add = false;
  bool extreme = false;  ///< with huge and tiny values, infinities and NaN
};

/// One layer's inputs, all on the host.
struct Inputs {
  Floats x, dy, gamma, beta, running_mean, running_variance, dgamma, dbeta;
};

Floats normal(std::int64_t count, std::mt19937_64& random, float deviation, float mean) {
  std::normal_distribution<float> draw(mean, deviation);
  Floats values(static_cast<std::size_t>(count));
  for (float& value : values) value = draw(random);
  return values;
}

/// Multiplies the channels by powers of two. Puts an infinity, a NaN or the largest number into a
/// few of them.
void make_extreme(Floats& values, std::int64_t channels, std::mt19937_64& random) {
  const float special[] = {
      std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
      std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::max()};
  const std::size_t width = static_cast<std::size_t>(channels);
  for (std::size_t c = 0; c < width; ++c) {
    const int exponent = static_cast<int>(c * 37 % 281) - 148;
    for (std::size_t i = c; i < values.size(); i += width) {
      values[i] = std::ldexp(values[i], exponent);
    }
    if (c % 7 != 3) continue;
    const std::size_t row = random() % (values.size() / width);
    values[row * width + c] = special[random() % 4];
  }
}

Inputs inputs_of(const Case& test) {
  std::mt19937_64 random(12 + test.shape.size());
  const std::int64_t size = sim::backend::elements(test.shape), c = test.shape.back();
  Inputs in{normal(size, random, 2, 0.5F), normal(size, random, 1, 0), normal(c, random, 0.2F, 1),
            normal(c, random, 1, 0),       normal(c, random, 1, 0),    normal(c, random, 0.1F, 1),
            normal(c, random, 1, 0),       normal(c, random, 1, 0)};
  if (test.extreme) {
    make_extreme(in.x, c, random);
    make_extreme(in.dy, c, random);
  }
  if (test.dtype != Dtype::f32) {
    quantise(format_of(test.dtype), in.x);
    quantise(format_of(test.dtype), in.dy);
  }
  return in;
}

/// What every backend computes of them: y, y in inference, the running statistics, the saved ones,
/// the gradients.
std::vector<Floats> results(Backend& backend, const Case& test, const Inputs& in) {
  const Shape channels = {test.shape.back()};
  const auto tensor = [&](const Shape& shape, Dtype dtype, const Floats& values) {
    Tensor made = backend.allocate_uninitialized(shape, dtype);
    backend.set(made, values);
    return made;
  };
  const auto wide = [&](const Floats& values) { return tensor(channels, Dtype::f32, values); };
  sim::backend::BatchNormParameters layer{wide(in.gamma), wide(in.beta), wide(in.running_mean),
                                          wide(in.running_variance)};
  const Tensor x = tensor(test.shape, test.dtype, in.x), dy = tensor(test.shape, test.dtype, in.dy);
  Tensor y = backend.allocate_uninitialized(test.shape, test.dtype),
         inferred = backend.allocate_uninitialized(test.shape, test.dtype),
         dx = backend.allocate_uninitialized(test.shape, test.dtype), dgamma = wide(in.dgamma),
         dbeta = wide(in.dbeta);
  sim::backend::BatchNormSaved inference, saved;
  backend.batch_norm_forward(x, layer, true, inference, inferred);
  backend.batch_norm_forward(x, layer, false, saved, y);
  backend.batch_norm_backward(x, dy, layer, saved, dx, dgamma, dbeta, test.add);
  std::vector<Floats> out;
  for (const Tensor& of :
       {y, inferred, layer.running_mean, layer.running_variance, saved.mean,
        saved.inverse_deviation, inference.mean, inference.inverse_deviation, dx, dgamma, dbeta}) {
    out.push_back(backend.get(of));
  }
  return out;
}

constexpr const char* kNames[] = {"y",
                                  "y in inference",
                                  "running mean",
                                  "running variance",
                                  "mean",
                                  "inverse deviation",
                                  "running mean, saved",
                                  "inverse running deviation, saved",
                                  "dx",
                                  "dgamma",
                                  "dbeta"};

/// Returns the position of the first value that differs, or an empty string.
std::string difference(const Floats& found, const Floats& wanted) {
  if (found.size() != wanted.size()) return "another size";
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(found[i]) && std::isnan(wanted[i])) continue;
    const auto a = std::bit_cast<std::uint32_t>(found[i]),
               b = std::bit_cast<std::uint32_t>(wanted[i]);
    if (a == b) continue;
    return "value " + std::to_string(i) + ": found " + std::to_string(a) + ", wanted " +
           std::to_string(b);
  }
  return {};
}

void check(const Case& test) {
  const auto device = device_backend();
  if (!device) return;
  const auto emulation = sim::backend::make_cpu_backend(sim::backend::Accumulation::fp32, 1);
  INFO(name_of(test.dtype) << (test.add ? ", added" : "") << (test.extreme ? ", extreme" : ""));
  INFO(sim::backend::elements(test.shape) / test.shape.back() << " rows of " << test.shape.back());
  const Inputs in = inputs_of(test);
  const std::vector<Floats> found = results(*device, test, in),
                            wanted = results(*emulation, test, in);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::string differs = difference(found[i], wanted[i]);
    INFO(kNames[i] << ", " << differs);
    CHECK(differs.empty());
  }
}

constexpr Dtype kDtypes[] = {Dtype::f16, Dtype::bf16, Dtype::f32};

TEST_CASE("cudnn backend: batch normalisation has the emulation's bits", "[gpu]") {
  for (const Dtype dtype : kDtypes) {
    for (const std::int64_t rows : {2, 3, 255, 256, 257, 300}) {
      for (const std::int64_t channels : {1, 2, 3, 7, 64, 130}) {
        check({{rows, channels}, dtype, channels % 2 == 0});
      }
    }
    for (const bool add : {false, true}) check({{3, 5, 7, 24}, dtype, add});
  }
}

TEST_CASE("cudnn backend: batch normalisation of thousands of rows", "[gpu]") {
  for (const Dtype dtype : kDtypes) {
    check({{4099, 7}, dtype, true});
    check({{7, 23, 29, 8}, dtype});
    check({{33025, 2}, dtype});  // 130 blocks of rows: more than total_kernel stages at a time
    check({{65700, 1}, dtype});
    check({{65700, 4}, dtype, true});  // 257 blocks, in vectors
    check({{700, 72}, dtype});         // a last group of fewer than 32 channels, in vectors
    check({{513, 40}, dtype, true});
  }
}

TEST_CASE("cudnn backend: batch normalisation of extreme values", "[gpu]") {
  for (const Dtype dtype : kDtypes) {
    for (const std::int64_t rows : {2, 40, 515}) {
      for (const bool add : {false, true}) {
        check({{rows, 290}, dtype, add, true});  // every exponent
        check({{rows, 129}, dtype, add, true});
      }
    }
  }
}

TEST_CASE("cudnn backend: batch normalisation refuses what it cannot read", "[gpu]") {
  const auto device = device_backend();
  if (!device) return;
  const auto make = [&](const Shape& shape, Dtype dtype) { return device->make(shape, dtype); };
  const Tensor x = make({4, 3}, Dtype::f16), wide = make({3}, Dtype::f32);
  Tensor y = make({4, 3}, Dtype::f16), narrow = make({3}, Dtype::f16),
         other = make({4, 3}, Dtype::f32);
  sim::backend::BatchNormSaved saved;
  sim::backend::BatchNormParameters layer{wide, wide, wide, wide};
  CHECK_THROWS_WITH(device->batch_norm_forward(x, layer, false, saved, other),
                    Catch::Matchers::Contains("F16 and F32 tensors"));
  layer.beta = narrow;
  CHECK_THROWS_WITH(device->batch_norm_forward(x, layer, false, saved, y),
                    Catch::Matchers::Contains("expected 3 values of F32"));
  layer.gamma = make({2}, Dtype::f32);
  CHECK_THROWS_WITH(device->batch_norm_forward(x, layer, false, saved, y),
                    Catch::Matchers::Contains("2 channels of parameters, 3 of the tensor"));
}

}  // namespace
}  // namespace halfscope::test::test_cudnn_batch_norm
