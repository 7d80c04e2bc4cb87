// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/stall.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "halfscope/number/convert.hpp"

namespace halfscope::analyzers::weights {
namespace {

double element(const TensorView& view, std::size_t i) {
  if (view.dtype == Dtype::f32) {
    float value = 0;
    std::memcpy(&value, view.data + i * sizeof value, sizeof value);
    return double{value};
  }
  const auto width = static_cast<std::size_t>(format_of(view.dtype).width / 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, view.data + i * width, width);
  return to_double(format_of(view.dtype), bits);
}

int exponent_of(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52) - 1023; }
double power(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

/// The copies of a format, and the boundaries between them.
class Copies {
 public:
  explicit Copies(Format f)
      : f_(f),
        top_(to_double(f, f.largest_finite())),
        beyond_(top_ + (top_ - to_double(f, f.largest_finite() - 1)) / 2) {}

  struct Boundary {
    double distance = 0;     ///< from p; negative if there is none
    bool inclusive = false;  ///< the boundary itself has another copy
  };

  /// Returns the boundary of the copy of p in the direction of u, which is not 0.
  Boundary boundary(double p, double u) const {
    const double size = std::abs(p), outward = std::copysign(1.0, p) * std::copysign(1.0, u);
    const int exponent = std::clamp(exponent_of(size), f_.emin(), f_.emax + 1);
    // In units of the copy's last place, c is the magnitude of the copy.
    const double unit = power(exponent - f_.fraction_bits());
    const double q = size * power(f_.fraction_bits() - exponent);
    const double c = q + 0x1p52 - 0x1p52;  // the nearest integer, ties to even
    if (c * unit > top_) {
      if (outward > 0) return {-1, false};
      return {size - beyond_, f_.largest_finite() % 2 == 0};
    }
    if (c == 0 && outward < 0) return {size, std::signbit(p)};  // a sum that is 0 is +0
    const double least = power(f_.fraction_bits());             // the least c of a normal number
    double half = 0.5;
    if (c == least && outward < 0 && exponent > f_.emin()) half = 0.25;
    if (c == 2 * least && outward > 0) half = 1;
    return {((c - q) * outward + half) * unit, (static_cast<std::uint64_t>(c) & 1) != 0};
  }

 private:
  Format f_;
  double top_, beyond_;  ///< largest finite number; from here on copies are infinite or NaN
};

/// Returns floor(log2(k)) of the least k >= 1 for which k * u reaches d (inclusive) or exceeds it.
std::size_t log2_steps(double d, double u, bool inclusive) {
  const double rough = d / u + 1;
  int j = std::min(exponent_of(rough), 254);
  const std::uint64_t fraction = std::bit_cast<std::uint64_t>(rough) + 16;
  if ((fraction & 0xFFFFFFFFFFFFF) >= 32) return static_cast<std::size_t>(j);
  const auto crosses = [&](int log2) {  // in 2^log2 - 1 steps
    const double beyond = std::fma(power(log2) - 1, u, -d);
    return inclusive ? beyond >= 0 : beyond > 0;
  };
  while (j < 254 && !crosses(j + 1)) ++j;
  while (j > 0 && crosses(j)) --j;
  return static_cast<std::size_t>(j);
}

}  // namespace

void count_stalls(const StallInputs& in, std::size_t begin, std::size_t n,
                  std::span<const std::uint8_t> moved, Stall& to) {
  const Copies copies(in.copies);
  const bool rounded = in.source == RateSource::update;
  const double steps = rounded ? 1 : in.steps;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if ((moved[i / 8] >> i % 8 & 1) != 0) continue;
    const double p = element(in.last, begin + i), first = element(in.first, begin + i);
    const double u = rounded ? first : p - first;
    if (!std::isfinite(p) || !std::isfinite(u)) continue;
    if (u == 0) {
      ++to.zero;
      continue;
    }
    const auto [distance, inclusive] = copies.boundary(p, u);
    const double d = distance * steps, size = std::abs(u);
    sum += size;
    to.sum_distance += std::max(distance, 0.0);
    const bool moves = distance >= 0 && (!rounded || size > d || (size == d && inclusive));
    ++(moves ? to.steps[log2_steps(d, size, inclusive)] : to.lost);
  }
  to.sum_update += sum / steps;
}

std::uint64_t Stall::weights() const {
  return std::accumulate(steps.begin(), steps.end(), never());
}

std::optional<Interval> Stall::median() const {
  const std::uint64_t all = weights();
  std::uint64_t below = 0;
  for (std::size_t j = 0; j < steps.size() && all != 0; ++j) {
    below += steps[j];
    if (below < all - below) continue;
    return j < 63 ? Interval(std::uint64_t{1} << j, (std::uint64_t{2} << j) - 1)
                  : Interval(std::uint64_t{1} << 63, ~std::uint64_t{0});
  }
  return std::nullopt;
}

Stall& Stall::operator+=(const Stall& other) {
  source = other.source;
  zero += other.zero;
  lost += other.lost;
  std::ranges::transform(steps, other.steps, steps.begin(), std::plus<>());
  sum_update += other.sum_update;
  sum_distance += other.sum_distance;
  return *this;
}

std::string_view name_of(RateSource source) {
  constexpr std::string_view kNames[] = {"values", "master", "update"};
  return kNames[static_cast<std::size_t>(source)];
}

}  // namespace halfscope::analyzers::weights
