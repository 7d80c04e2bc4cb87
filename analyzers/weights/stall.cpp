// SPDX-License-Identifier: Apache-2.0
// Weights that never move: distances to the boundaries of their copies.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "analyzers/frames/elements.hpp"
#include "analyzers/weights/moved.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/optimizer/changed.hpp"

namespace halfscope::analyzers::weights {
namespace {

using log::Role;

/// Returns the magnitudes between adjacent copies: 0, those between magnitude codes m - 1 and m,
/// where overflow begins, and infinity.
std::vector<double> boundaries_of(Format f) {
  const std::uint64_t top = f.largest_finite();
  std::vector<double> out = {0};
  for (std::uint64_t m = 1; m <= top; ++m) {
    out.push_back((to_double(f, m - 1) + to_double(f, m)) / 2);
  }
  out.push_back(to_double(f, top) * 1.5 - to_double(f, top - 1) / 2);
  out.push_back(std::numeric_limits<double>::infinity());
  return out;
}

/// Returns floor(log2(k)) of the least k >= 1 for which k * u reaches d (inclusive) or exceeds it.
std::size_t log2_steps(double d, double u, bool inclusive) {
  const auto bits = std::bit_cast<std::uint64_t>(d / u + 1);
  int j = std::min(static_cast<int>(bits >> 52) - 1023, 254);
  if (((bits + 16) & 0xFFFFFFFFFFFFF) >= 32) return static_cast<std::size_t>(j);
  const auto crosses = [&](int log2) {  // in 2^log2 - 1 steps
    const double beyond = std::fma(std::ldexp(1.0, log2) - 1, u, -d);
    return inclusive ? beyond >= 0 : beyond > 0;
  };
  while (j < 254 && !crosses(j + 1)) ++j;
  while (j > 0 && crosses(j)) --j;
  return static_cast<std::size_t>(j);
}

/// Counts elements [begin, begin + n) whose bit in `moved` is 0: bit i % 8 of moved[i / 8].
template <class Code>
Stall count_stalls(const TensorView& first, const TensorView& last, double steps, Dtype copies,
                   std::span<const double> boundaries, std::span<const std::uint8_t> moved,
                   std::size_t begin, std::size_t n) {
  const std::vector<double> a = frames::elements(first, begin, n);
  const std::vector<double> b = frames::elements(last, begin, n);
  std::vector<Code> codes(n);
  optimizer::copies_of(last, copies, begin, n, reinterpret_cast<std::byte*>(codes.data()));
  const std::size_t beyond = boundaries.size() - 2;  // infinite or NaN
  Stall to;
  for (std::size_t i = 0; i < n; ++i) {
    const double p = b[i], u = p - a[i], size = std::abs(u);
    if ((moved[(begin + i) / 8] >> (begin + i) % 8 & 1) != 0 || !std::isfinite(u)) continue;
    if (u == 0) {
      ++to.zero;
      continue;
    }
    const std::size_t m = std::min<std::size_t>(codes[i] & (Code(~Code{0}) >> 1), beyond);
    const bool outward = std::signbit(p) == std::signbit(u);
    const double distance = std::abs(std::abs(p) - boundaries[outward ? m + 1 : m]);
    // Ties round to the even copy, and a sum that is 0 is +0.
    const bool inclusive = m % 2 != 0 || (m == 0 && !outward && std::signbit(p));
    to.sum_update += size / steps;
    if (std::isinf(distance)) {
      ++to.lost;
    } else {
      to.sum_distance += distance;
      ++to.steps[log2_steps(distance * steps, size, inclusive)];
    }
  }
  return to;
}

}  // namespace

std::optional<Stall> MovedPass::stalls_of(const Key& key, Dtype copies) {
  const auto is_narrow = [](const Shard& shard) {
    return format_of(shard.last.outline.view.dtype).width <= 16;
  };
  const auto fit = [&](const Shard& a, const Shard& b) {
    return a.steps == b.steps && a.last.outline.view.count == b.last.outline.view.count &&
           !is_narrow(b);
  };
  const std::vector<Shard>& own = tensors_.at(key).shards;
  const auto values =
      tensors_.find({is_narrow(own[0]) ? Role::master_weight : key.first, key.second});
  if (values == tensors_.end() || !std::ranges::equal(own, values->second.shards, fit)) return {};
  auto& boundaries = boundaries_[copies];
  if (boundaries.empty()) boundaries = boundaries_of(format_of(copies));
  const auto steps = static_cast<double>(steps_.back() - steps_.front());
  const auto count =
      format_of(copies).width == 8 ? count_stalls<std::uint8_t> : count_stalls<std::uint16_t>;
  Stall out;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto a = values->second.shards[i].first.load(), b = values->second.shards[i].last.load();
    const auto work = [&](std::size_t block) {
      const std::size_t begin = block * kBlock, n = std::min(kBlock, b->view.count - begin);
      return count(a->view, b->view, steps, copies, boundaries, own[i].moved, begin, n);
    };
    frames::in_order<Stall>((b->view.count + kBlock - 1) / kBlock, 0, work,
                            [&](const Stall& some) { out += some; });
  }
  return out.weights() == 0 ? std::nullopt : std::optional(out);
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
