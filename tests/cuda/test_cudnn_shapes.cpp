// SPDX-License-Identifier: Apache-2.0
// Every convolution of our networks, as they ask for it, on the cuDNN backend: some hundred
// elements of each result against the same sums in binary64, term by term.
#include <algorithm>
#include <cmath>
#include <random>

#include "catch.hpp"
#include "cuda/device_backend.hpp"
#include "cuda/network_calls.hpp"
#include "cuda/roundings.hpp"
#include "halfscope/array/array.hpp"

namespace halfscope::test::test_cudnn_shapes {
namespace {

using sim::backend::Shape;
using sim::backend::Tensor;
using Kind = ConvolutionCall::Kind;
using Floats = std::vector<float>;

/// Values of the dtype, of magnitude 1: a table over and over, of a prime length.
Floats values_of(const Shape& shape, Dtype dtype, std::uint64_t seed) {
  constexpr std::size_t kPeriod = 65521;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  Floats table(kPeriod);
  for (float& value : table) value = draw(random);
  if (dtype != Dtype::f32) quantise(format_of(dtype), table);
  Floats values(static_cast<std::size_t>(sim::backend::elements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = table[i % kPeriod];
  return values;
}

/// A sum of products, the sum of their magnitudes, the largest sum on the way, how many there are.
struct Sum {
  double value = 0, magnitude = 0, peak = 0, terms = 0;
  void add(float a, float b) {
    value += double{a} * double{b};
    magnitude += std::abs(double{a} * double{b});
    peak = std::max(peak, std::abs(value));
    ++terms;
  }
};

/// What one convolution is made of: x (N, H, W, C), w (K, R, S, C), y (N, P, Q, K).
struct Terms {
  const ConvolutionCall& call;
  const Floats &x, &w, &y;
  Shape shape_y = call.y();

  static std::size_t at(const Shape& s, std::int64_t a, std::int64_t b, std::int64_t c,
                        std::int64_t d) {
    return static_cast<std::size_t>(((a * s[1] + b) * s[2] + c) * s[3] + d);
  }
  bool inside(std::int64_t h, std::int64_t width) const {
    return h >= 0 && h < call.x[1] && width >= 0 && width < call.x[2];
  }

  // Sums over the taps that meet the image.
  Sum forward(std::int64_t n, std::int64_t p, std::int64_t q, std::int64_t k) const {
    Sum sum;
    for (std::int64_t r = 0; r < call.w[1]; ++r) {
      for (std::int64_t s = 0; s < call.w[2]; ++s) {
        const std::int64_t h = p * call.conv.stride + r - call.conv.padding;
        const std::int64_t v = q * call.conv.stride + s - call.conv.padding;
        if (!inside(h, v)) continue;
        for (std::int64_t c = 0; c < call.x[3]; ++c) {
          sum.add(x[at(call.x, n, h, v, c)], w[at(call.w, k, r, s, c)]);
        }
      }
    }
    return sum;
  }
  Sum data_gradient(std::int64_t n, std::int64_t h, std::int64_t v, std::int64_t c) const {
    Sum sum;
    for (std::int64_t p = 0; p < shape_y[1]; ++p) {
      const std::int64_t r = h + call.conv.padding - p * call.conv.stride;
      if (r < 0 || r >= call.w[1]) continue;
      for (std::int64_t q = 0; q < shape_y[2]; ++q) {
        const std::int64_t s = v + call.conv.padding - q * call.conv.stride;
        if (s < 0 || s >= call.w[2]) continue;
        for (std::int64_t k = 0; k < call.w[0]; ++k) {
          sum.add(y[at(shape_y, n, p, q, k)], w[at(call.w, k, r, s, c)]);
        }
      }
    }
    return sum;
  }
  Sum weight_gradient(std::int64_t k, std::int64_t r, std::int64_t s, std::int64_t c) const {
    Sum sum;
    for (std::int64_t n = 0; n < call.x[0]; ++n) {
      for (std::int64_t p = 0; p < shape_y[1]; ++p) {
        for (std::int64_t q = 0; q < shape_y[2]; ++q) {
          const std::int64_t h = p * call.conv.stride + r - call.conv.padding;
          const std::int64_t v = q * call.conv.stride + s - call.conv.padding;
          if (inside(h, v)) sum.add(x[at(call.x, n, h, v, c)], y[at(shape_y, n, p, q, k)]);
        }
      }
    }
    return sum;
  }
  Sum of(const Shape& i) const {
    switch (call.kind) {
      case Kind::fprop: return forward(i[0], i[1], i[2], i[3]);
      case Kind::dgrad: return data_gradient(i[0], i[1], i[2], i[3]);
      case Kind::wgrad: return weight_gradient(i[0], i[1], i[2], i[3]);
    }
    return {};
  }
};

/// Half a step of the dtype at a value.
double half_step(Dtype dtype, double value) {
  const Format f = format_of(dtype);
  const int exponent = std::max(value == 0 ? f.emin() : std::ilogb(value), f.emin());
  return std::ldexp(0.5001, exponent - f.fraction_bits());
}

/// What sums in binary32 may be off by. Tensor Cores cut 16 products and the sum so far down to its
/// last place (arXiv 2512.07004): so many steps, each less than 2^-23 of a sum that is at most
/// twice the largest of another order. The weight gradients of resnet50's first layer have 802,816
/// terms.
double sum_tolerance(const Sum& sum) {
  return sum.magnitude * 0x1p-20 + sum.terms / 16 * sum.peak * 0x1p-22;
}

Shape place_of(const Shape& shape, std::int64_t index) {
  Shape place(4);
  for (std::size_t i = 4; i-- > 0; index /= shape[i]) place[i] = index % shape[i];
  return place;
}

Floats computed(sim::backend::Backend& device, const ConvolutionCall& call, Dtype dtype,
                const Floats& x, const Floats& w, const Floats& y, const Shape& shape) {
  const auto made = [&](const Shape& of, const Floats& values) {
    Tensor tensor = device.allocate_uninitialized(of, dtype);
    device.set(tensor, values);
    return tensor;
  };
  Tensor result = device.allocate_uninitialized(shape, dtype);
  if (call.add && call.kind == Kind::wgrad) device.fill(result, 0.5F);
  Tensor bias;
  if (call.add && call.kind == Kind::fprop) {
    bias = device.allocate_uninitialized({call.w[0]}, dtype);
    device.fill(bias, 0.5F);
  }
  switch (call.kind) {
    case Kind::fprop:
      device.conv_forward(call.conv, made(call.x, x), made(call.w, w), bias, result);
      break;
    case Kind::dgrad:
      device.conv_data_gradient(call.conv, made(call.y(), y), made(call.w, w), result);
      break;
    case Kind::wgrad:
      device.conv_weight_gradient(call.conv, made(call.x, x), made(call.y(), y), result, call.add);
      break;
  }
  return device.get(result);
}

/// An operation's result: of `call.add`, 0.5 added to the sum. cuDNN rounds a weight gradient to
/// binary16 before it adds to what is there (seen on an H100), so that it may be off by both.
double tolerance(Dtype dtype, const Sum& sum, const ConvolutionCall& call) {
  const double added = call.add ? 0.5 : 0;
  const bool rounded_before = call.add && call.kind == Kind::wgrad;
  return half_step(dtype, sum.value + added) + (rounded_before ? half_step(dtype, sum.value) : 0) +
         sum_tolerance(sum);
}

Roundings check_call(sim::backend::Backend& device, const ConvolutionCall& call, Dtype dtype) {
  constexpr std::int64_t kElements = 200;
  const Floats x = values_of(call.x, dtype, 1), w = values_of(call.w, dtype, 2),
               y = values_of(call.y(), dtype, 3);
  const Terms terms{call, x, w, y};
  const Shape shape = call.kind == Kind::fprop   ? call.y()
                      : call.kind == Kind::dgrad ? call.x
                                                 : call.w;
  const Floats found = computed(device, call, dtype, x, w, y, shape);
  std::mt19937_64 random(4);
  double worst = 0;
  Roundings roundings;
  for (std::int64_t i = 0; i < kElements; ++i) {
    const std::int64_t index = i == 0 ? 0 : static_cast<std::int64_t>(random() % found.size());
    const Sum sum = terms.of(place_of(shape, index));
    const float result = found[static_cast<std::size_t>(index)];
    const double off = std::abs(double{result} - sum.value - (call.add ? 0.5 : 0));
    const double share = off / tolerance(dtype, sum, call);
    worst = std::isnan(share) ? HUGE_VAL : std::max(worst, share);
    if (call.add && call.kind == Kind::wgrad && dtype == Dtype::f16) {
      roundings.count(double{result}, sum.value, 0.5);
    }
  }
  CHECK(worst <= 1);
  return roundings;
}

void check_network(const std::string& name) {
  const auto device = device_backend();
  if (!device) return;
  const std::set<ConvolutionCall> calls = network_convolutions().at(name);
  Roundings all;
  for (const ConvolutionCall& call : calls) {
    for (const Dtype dtype : {Dtype::f16, Dtype::f32}) {
      INFO(name << ", operation " << static_cast<int>(call.kind) << ", channels " << call.x[3]
                << " to " << call.w[0] << ", side " << call.x[1] << ", kernel " << call.w[1]
                << ", stride " << call.conv.stride << (call.add ? ", added, " : ", ")
                << name_of(dtype));
      const Roundings here = check_call(*device, call, dtype);
      all.once += here.once, all.twice += here.twice, all.neither += here.neither;
    }
  }
  all.tell(name + ", weight gradients");
}

TEST_CASE("cudnn shapes: lenet on digits", "[gpu]") { check_network("lenet, 8 x 8"); }
TEST_CASE("cudnn shapes: lenet on large digits", "[gpu][slow]") { check_network("lenet, 28 x 28"); }
TEST_CASE("cudnn shapes: tinyssd", "[.][gpu][large]") { check_network("tinyssd"); }
TEST_CASE("cudnn shapes: resnet20", "[.][gpu][large]") { check_network("resnet20"); }
TEST_CASE("cudnn shapes: resnet50", "[.][gpu][large]") { check_network("resnet50"); }

}  // namespace
}  // namespace halfscope::test::test_cudnn_shapes
