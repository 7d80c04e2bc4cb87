// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/stall.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>

#include "analyzers/frames/elements.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/optimizer/changed.hpp"

namespace halfscope::analyzers::weights {
namespace {

/// Returns the codes of elements' copies.
std::vector<std::uint16_t> codes_of(const StallInputs& in, std::size_t begin, std::size_t n) {
  const bool narrow = format_of(in.copies).width == 8;
  std::vector<std::uint16_t> codes(n);
  auto* const bytes = reinterpret_cast<std::byte*>(codes.data());
  optimizer::copies_of(in.last, in.copies, begin, n, bytes + (narrow ? n : 0));
  for (std::size_t i = 0; narrow && i < n; ++i) {
    codes[i] = std::to_integer<std::uint16_t>(bytes[n + i]);
  }
  return codes;
}

/// Returns floor(log2(k)) of the least k >= 1 for which k * u reaches d (inclusive) or exceeds it.
std::size_t log2_steps(double d, double u, bool inclusive) {
  const auto crosses = [&](int log2) {  // in 2^log2 - 1 steps
    const double beyond = std::fma(std::ldexp(1.0, log2) - 1, u, -d);
    return inclusive ? beyond >= 0 : beyond > 0;
  };
  const double rough = d / u + 1;
  int j = std::min(std::ilogb(rough), 254);
  const double above = std::ldexp(rough, -j) - 1;  // 0 to 1
  if (above > 0x1p-47 && above < 1 - 0x1p-47) return static_cast<std::size_t>(j);
  while (j < 254 && !crosses(j + 1)) ++j;
  while (j > 0 && crosses(j)) --j;
  return static_cast<std::size_t>(j);
}

}  // namespace

std::vector<double> copy_boundaries(Dtype copies) {
  const Format f = format_of(copies);
  const std::uint64_t top = f.largest_finite();
  std::vector<double> out = {0};
  for (std::uint64_t m = 1; m <= top; ++m) {
    out.push_back((to_double(f, m - 1) + to_double(f, m)) / 2);
  }
  out.push_back(to_double(f, top) * 1.5 - to_double(f, top - 1) / 2);
  out.push_back(std::numeric_limits<double>::infinity());
  return out;
}

void count_stalls(const StallInputs& in, std::size_t begin, std::size_t n,
                  std::span<const std::uint8_t> moved, Stall& to) {
  const std::vector<double> first = frames::elements(in.first, begin, n);
  const std::vector<double> last = frames::elements(in.last, begin, n);
  const std::vector<std::uint16_t> codes = codes_of(in, begin, n);
  const std::size_t beyond = in.boundaries->size() - 2;  // infinite or NaN
  const unsigned magnitudes = (1U << (format_of(in.copies).width - 1)) - 1;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double p = last[i], u = p - first[i];
    if ((moved[i / 8] >> i % 8 & 1) != 0 || !std::isfinite(u)) continue;
    if (u == 0) {
      ++to.zero;
      continue;
    }
    const std::size_t m = std::min<std::size_t>(codes[i] & magnitudes, beyond);
    const bool outward = std::signbit(p) == std::signbit(u);
    const double boundary = (*in.boundaries)[outward ? m + 1 : m];
    const double distance = std::abs(std::abs(p) - boundary), size = std::abs(u);
    // Ties round to the even copy, and a sum that is 0 is +0.
    const bool inclusive = m % 2 != 0 || (m == 0 && !outward && std::signbit(p));
    sum += size;
    if (std::isinf(distance)) {
      ++to.lost;
      continue;
    }
    to.sum_distance += distance;
    ++to.steps[log2_steps(distance * in.steps, size, inclusive)];
  }
  to.sum_update += sum / in.steps;
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
  zero += other.zero;
  lost += other.lost;
  std::ranges::transform(steps, other.steps, steps.begin(), std::plus<>());
  sum_update += other.sum_update;
  sum_distance += other.sum_distance;
  return *this;
}

}  // namespace halfscope::analyzers::weights
