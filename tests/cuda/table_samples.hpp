// SPDX-License-Identifier: Apache-2.0
// Tensors on the host and on the device, and the comparison of their tables.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/stream.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/count_cuda.hpp"

namespace test_table {

using namespace halfscope;
using cuda::CountLimits;
using cuda::DeviceTensor;
using cuda::FactsCount;
using cuda::GradientSums;
using cuda::TableCount;
using cuda::TensorFacts;

using Bits = std::vector<std::uint32_t>;  // encodings, whatever their width

/// A tensor on the host and on the device, there `offset` elements behind a multiple of 256 bytes.
class Sample {
 public:
  Sample(Dtype dtype, const Bits& encodings, std::size_t offset = 0)
      : dtype_(dtype), count_(encodings.size()), width_(dtype == Dtype::f32 ? 4 : 2) {
    bytes_.resize(width_ * (offset + count_));
    for (std::size_t i = 0; i < count_; ++i) {
      std::memcpy(&bytes_[width_ * (offset + i)], &encodings[i], width_);
    }
    start_ = width_ * offset;
    device_ = device::copy_of(bytes_);
  }

  TensorView view() const { return {dtype_, bytes_.data() + start_, count_}; }
  DeviceTensor tensor() const {
    return {dtype_, device_.get() + start_, static_cast<std::int64_t>(count_)};
  }
  double value(std::size_t i) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, view().data + width_ * i, width_);
    return to_double(format_of(dtype_), bits);
  }

 private:
  Dtype dtype_;
  std::size_t count_, width_, start_ = 0;
  std::vector<std::byte> bytes_;
  std::unique_ptr<std::byte, device::Free> device_;
};

using Samples = std::vector<Sample>;

inline std::vector<DeviceTensor> tensors_of(const Samples& samples) {
  std::vector<DeviceTensor> out;
  for (const Sample& sample : samples) out.push_back(sample.tensor());
  return out;
}

inline constexpr CountLimits kByParts = {.encodings_from =
                                             std::numeric_limits<std::int64_t>::max()};

inline std::vector<TensorFacts> count(const Samples& samples,
                                      const CountLimits& limits = kByParts) {
  const Stream stream;
  return TableCount(tensors_of(samples), stream.get(), limits).get();
}

/// What any order of the additions may differ by.
inline bool are_close(double a, double b, double magnitude) {
  return std::fabs(a - b) <= 1e-12 * magnitude || a == b;
}

inline void require_same(const Sample& sample, const TensorFacts& got) {
  const TensorView view = sample.view();
  REQUIRE(got.table == count_binades_scalar(view, standard_cuts()));
  REQUIRE(got.table == count_binades(view, 1));
  const Moments want = moments(view);
  const double root_mean = std::sqrt(want.sum_squares / std::max<double>(1, double(view.count)));
  REQUIRE(are_close(got.moments.mean, want.mean, root_mean));
  REQUIRE(are_close(got.moments.sum_squares, want.sum_squares, want.sum_squares));
}

inline void require_all_same(const Samples& samples, const std::vector<TensorFacts>& got) {
  REQUIRE(got.size() == samples.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("tensor " << i << ", " << name_of(samples[i].view().dtype) << ", "
                   << samples[i].view().count);
    require_same(samples[i], got[i]);
  }
}

inline void require_same(const Samples& samples, const CountLimits& limits = kByParts) {
  require_all_same(samples, count(samples, limits));
}

/// Gradients' magnitudes: log-normal around 2^-12, as encodings of a dtype.
inline Bits log_normal(Dtype dtype, std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> log2_magnitude(-12, 6);
  Bits out(n);
  for (auto& bits : out) {
    const float x = std::exp2(log2_magnitude(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
    bits = static_cast<std::uint32_t>(from_float(format_of(dtype), x).bits);
  }
  return out;
}

/// binary32 numbers of few bits in few binades: their lowest bit is told.
inline Bits narrow_floats(int lowest, int binades, std::size_t n) {
  std::mt19937 random(static_cast<unsigned>(1000 + lowest));
  Bits out(n);
  for (auto& bits : out) {
    const auto significand = static_cast<double>(1024 + random() % 1024);
    const double shift = static_cast<double>(random() % static_cast<unsigned>(binades));
    const double x = std::ldexp(significand, lowest + static_cast<int>(shift));
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(random() % 9 == 0 ? 0 : -x));
  }
  return out;
}

inline GradientSums sums_of(const Sample& sample) {
  GradientSums sums;
  for (std::size_t i = 0; i < sample.view().count; ++i) {
    const double x = sample.value(i);
    sums.nan |= std::isnan(x);
    sums.infinity |= std::isinf(x);
    if (!std::isnan(x)) sums.max_abs = std::max(sums.max_abs, std::fabs(x));
    if (std::isfinite(x)) sums.sum_squares += x * x;
  }
  return sums;
}

}  // namespace test_table
