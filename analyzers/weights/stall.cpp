// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/stall.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "halfscope/number/convert.hpp"

namespace halfscope::analyzers::weights {
namespace {

double element(const TensorView& view, std::size_t i) {
  const auto width = static_cast<std::size_t>(format_of(view.dtype).width / 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, view.data + i * width, width);
  if (view.dtype == Dtype::f32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  return to_double(format_of(view.dtype), bits);
}

/// Returns the value of a magnitude. The one after the largest finite one continues its binade.
double value_of(Format f, std::uint64_t magnitude) {
  const std::uint64_t largest = f.largest_finite();
  if (magnitude <= largest) return to_double(f, magnitude);
  return 2 * to_double(f, largest) - to_double(f, largest - 1);
}

/// The first boundary of a copy in one direction.
struct Boundary {
  bool exists = false;
  bool inclusive = false;  ///< the boundary itself has another copy
  double at = 0;
};

/// Returns the boundary of the copy of p for positive (up) or negative updates.
Boundary boundary_of(Format f, double p, bool up) {
  const std::uint64_t copy = from_double(f, p).bits, magnitude = copy & f.magnitude_mask();
  const bool negative = (copy & f.sign_mask()) != 0, away = negative != up;
  if (magnitude == 0 && !away) return {true, negative, 0};  // the copy of 0 is +0
  if (magnitude > f.largest_finite() && away) return {};
  const std::uint64_t low = away ? magnitude : std::min(magnitude, f.infinity()) - 1;
  const double middle = value_of(f, low) / 2 + value_of(f, low + 1) / 2;
  return {true, magnitude % 2 != 0, negative ? -middle : middle};
}

/// Returns floor(log2(k)) of the least k >= 1 for which k * u reaches d (inclusive) or exceeds it.
std::size_t log2_steps(double d, double u, bool inclusive) {
  const auto crosses = [&](int j) {  // in 2^j - 1 steps
    const double beyond = std::fma(std::ldexp(1.0, j) - 1, u, -d);
    return inclusive ? beyond >= 0 : beyond > 0;
  };
  int j = std::clamp(std::ilogb(d / u + 1), 0, 254);
  while (j < 254 && !crosses(j + 1)) ++j;
  while (j > 0 && crosses(j)) --j;
  return static_cast<std::size_t>(j);
}

}  // namespace

void count_stalls(const StallInputs& in, std::size_t begin, std::size_t n,
                  std::span<const std::uint8_t> moved, Stall& to) {
  const bool rounded = in.source == RateSource::update;
  const double steps = rounded ? 1 : in.steps;
  for (std::size_t i = 0; i < n; ++i) {
    if ((moved[i / 8] >> i % 8 & 1) != 0) continue;
    const double p = element(in.last, begin + i), first = element(in.first, begin + i);
    const double u = rounded ? first : p - first;
    if (!std::isfinite(p) || !std::isfinite(u)) continue;
    if (u == 0) {
      ++to.zero;
      continue;
    }
    const Boundary boundary = boundary_of(in.copies, p, u > 0);
    const double size = std::abs(u), distance = std::abs(boundary.at - p);
    const auto stays = [&] {
      return from_double(in.copies, p + u).bits == from_double(in.copies, p).bits;
    };
    to.sum_update += size / steps;
    if (boundary.exists) to.sum_distance += distance;
    if (!boundary.exists || (rounded && stays())) {
      ++to.lost;
    } else {
      ++to.steps[rounded ? 0 : log2_steps(distance * steps, size, boundary.inclusive)];
    }
  }
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
