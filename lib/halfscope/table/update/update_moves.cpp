// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update/update_moves.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "halfscope/number/arithmetic.hpp"

namespace halfscope {
namespace {

/// Returns the exact sum of two values of different binades or signs; bits below its first 60 may
/// be folded into the lowest: enough for 11 + 32 + 1 bits (docs/numerics/emulator.md, section 2).
Unpacked sum_of(Unpacked x, Unpacked y) {
  if (x.kind == Kind::zero) return y;
  x = detail::normalised(x, 62);
  y = detail::normalised(y, 62);
  if (std::pair(y.exponent, y.significand) > std::pair(x.exponent, x.significand)) std::swap(x, y);
  const std::uint64_t aligned = detail::shift_right_sticky(y.significand, x.exponent - y.exponent);
  x.significand = x.negative == y.negative ? x.significand + aligned : x.significand - aligned;
  if (x.significand == 0) x.kind = Kind::zero;
  return x;
}

/// 2^bits times `way` / 2^64, rounded down.
std::uint64_t whole(std::uint64_t way, int bits) { return way >> (64 - bits); }

/// Rounds n to p bits, ties to even.
std::uint64_t rounded_to_bits(std::uint64_t n, int p) {
  const int shift = detail::bit_width(n) - p;
  if (shift <= 0) return n;
  const detail::Cut cut = detail::cut_at(n, shift);
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): shift is 63 at most
  return (cut.kept + (detail::rounds_up(cut, false, Modes()) ? 1 : 0)) << shift;
}

/// Returns y_N in units of the last place of u; `significand` is u in these units. All y are
/// integers of at most p significant bits, for subnormal u too.
std::uint64_t kahan_reach(int p, std::uint64_t significand, std::uint64_t steps) {
  std::uint64_t y = significand;
  for (std::uint64_t step = 1; step < steps; ++step) {
    const std::uint64_t next = rounded_to_bits(y + significand, p);
    if (next == y) break;
    y = next;
  }
  return y;
}

float as_float(Format f, std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(convert(kBinary32, f, bits).bits));
}

/// The least binary32 number above `copy`, a value of f, that does not round to it.
float first_above(Format f, std::uint64_t copy) {
  if (copy == f.sign_mask()) copy = 0;
  const bool negative = (copy & f.sign_mask()) != 0;
  const std::uint64_t next = negative ? copy - 1 : copy + 1;
  const bool even = (copy & 1) == 0;
  // The encoding after the largest finite number is the next power of two here.
  const double upper =
      next == f.infinity() ? std::ldexp(1.0, f.emax + 1) : double{as_float(f, next)};
  const auto middle = static_cast<float>((double{as_float(f, copy)} + upper) / 2);
  return even ? std::nextafter(middle, INFINITY) : middle;
}

constexpr float kSmallestNormal = 0x1p-126f;

/// Returns the last number before `bound` that m can reach without leaving its binade. Sums that
/// round to a number up to it are rounded to the same unit in the last place.
float last_of_binade(float m, float bound) {
  const float magnitude = std::fabs(m);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  const std::uint32_t start = magnitude < kSmallestNormal ? 0 : bits & 0x7F800000u;
  const std::uint32_t end = magnitude < kSmallestNormal ? 0x00800000u : start + 0x00800000u;
  const float last = m < 0 ? -std::bit_cast<float>(start + 1) : std::bit_cast<float>(end - 1);
  return last < bound ? last : std::nextafter(bound, -INFINITY);
}

/// first_move() for u > 0: number of steps until m >= bound.
std::uint64_t steps_to(float m, float u, float bound) {
  std::uint64_t n = 0;
  while (m < bound) {
    const float next = m + u;
    if (next == m) return 0;
    ++n;
    const float last = last_of_binade(m, bound);
    m = next;
    if (m + u > last || m + u == m) continue;
    const double step = double{m + u} - double{m};  // from here on constant, up to `last`
    const double jump = std::floor((double{last} - double{m}) / step);
    n += static_cast<std::uint64_t>(jump);
    m = static_cast<float>(double{m} + jump * step);
  }
  return n;
}

}  // namespace

RandomMove random_move(Format f, std::uint64_t w16, std::uint32_t u) {
  const RandomMove certain = {false, false, 0, false};
  const Unpacked sum = sum_of(unpack(f, w16), unpack(kBinary32, u));
  if (sum.kind == Kind::zero) return certain;
  const int e = sum.exponent + detail::bit_width(sum.significand) - 1;
  if (e > f.emax) return certain;
  const int q = std::max(e, f.emin()) - f.fraction_bits();
  const detail::Cut cut = detail::cut_at(sum.significand, q - sum.exponent);
  if (!cut.inexact()) return certain;
  const std::uint64_t lower =
      (static_cast<std::uint64_t>(q - f.min_quantum_exponent()) << f.fraction_bits()) + cut.kept;
  const std::uint64_t magnitude = w16 & f.magnitude_mask();
  const bool same_sign = magnitude == 0 || ((w16 & f.sign_mask()) != 0) == sum.negative;
  if (!same_sign) return certain;
  if (magnitude == lower) return {true, true, cut.discarded, cut.sticky};
  if (magnitude != lower + 1) return certain;
  // From the upper neighbour: 1 - d, exact if nothing is sticky and 64 bits represent d.
  return {true, false, cut.sticky ? ~cut.discarded : 0 - cut.discarded, cut.sticky};
}

std::uint64_t moves_above(const RandomMove& move, int bits) {
  if (!move.by_chance) return std::uint64_t{1} << bits;
  const bool rest = move.more || (move.way << bits) != 0;
  const std::uint64_t down = whole(move.way, bits);
  // R below 2^bits d rounds up, so for upward moves the number is rounded up; other R round down,
  // so for downward moves it is rounded down.
  return move.away_from_zero && rest ? down + 1 : down;
}

std::uint64_t moves_truncated(const RandomMove& move, int bits) {
  if (!move.by_chance) return std::uint64_t{1} << bits;
  const bool rest = move.more || (move.way << bits) != 0;
  const std::uint64_t down = whole(move.way, bits);
  return !move.away_from_zero && rest ? down + 1 : down;
}

KahanReach::KahanReach(Format f, std::uint64_t steps) : format_(f), reach_(f.infinity() + 1) {
  std::vector<std::uint64_t> by_significand(std::size_t{1} << f.precision);
  for (std::uint64_t s = 1; s < by_significand.size() && steps != 0; ++s) {
    by_significand[s] = kahan_reach(f.precision, s, steps);
  }
  for (std::uint64_t u = 1; u < f.infinity(); ++u) {
    const Unpacked x = unpack(f, u);
    const std::uint64_t y = by_significand[x.significand];
    reach_[u] = static_cast<std::uint16_t>(round_pack(f, false, y, x.exponent).bits);
  }
  reach_[f.infinity()] = static_cast<std::uint16_t>(steps == 0 ? 0 : f.infinity());
}

std::uint64_t first_move(Format f, float master, float update) {
  const float m = update < 0 ? -master : master;  // rounding is symmetric
  const std::uint64_t copy = from_float(f, m).bits;
  return steps_to(m, std::fabs(update), first_above(f, copy));
}

}  // namespace halfscope
