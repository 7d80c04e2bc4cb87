// SPDX-License-Identifier: Apache-2.0
// All rounding happens here. Derivation and choices: docs/numerics/emulator.md.
#pragma once

#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"
#include "halfscope/number/require.hpp"

namespace halfscope {
namespace detail {

/// An exact value cut at bit q: kept * 2^q plus a discarded part below 2^q.
struct Cut {
  std::uint64_t kept;
  std::uint64_t discarded;  ///< the first 64 bits of the discarded part / 2^q, as a fraction
  bool sticky;              ///< true if nonzero bits follow `discarded`

  HALFSCOPE_HD constexpr bool inexact() const { return discarded != 0 || sticky; }
};

HALFSCOPE_HD constexpr Cut cut_at(std::uint64_t significand, int shift) {
  if (shift <= 0) return {significand << -shift, 0, false};
  if (shift < 64) return {significand >> shift, significand << (64 - shift), false};
  if (shift == 64) return {0, significand, false};
  if (shift >= 128) return {0, 0, significand != 0};
  return {0, significand >> (shift - 64), significand << (128 - shift) != 0};
}

HALFSCOPE_HD constexpr bool rounds_up(const Cut& c, bool negative, const Modes& modes) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  const bool odd = (c.kept & 1) != 0;
  switch (modes.rounding) {
    case Rounding::ties_to_even:  // if sticky is set, discarded is below a half
      return c.discarded > kHalf || (c.discarded == kHalf && odd);
    case Rounding::ties_to_away: return c.discarded >= kHalf;
    case Rounding::toward_zero: return false;
    case Rounding::upward: return c.inexact() && !negative;
    case Rounding::downward: return c.inexact() && negative;
    case Rounding::to_odd: return c.inexact() && !odd;
    case Rounding::stochastic: break;
  }
  require_random(modes);
  // True if the discarded fraction exceeds R / 2^r, a fraction of 64 bits since r <= 32.
  const std::uint64_t threshold = std::uint64_t{modes.random} << (64 - modes.random_bits);
  return c.discarded > threshold || (c.discarded == threshold && c.sticky);
}

/// Magnitude after overflow, IEEE 754-2019, 7.4: infinity, or the largest finite number if the
/// direction points away from infinity. For formats without infinity see Format::infinity().
HALFSCOPE_HD constexpr std::uint64_t overflow_magnitude(Format f, bool negative,
                                                        const Modes& modes) {
  const Rounding r = modes.rounding;
  const bool to_finite = modes.saturate || r == Rounding::toward_zero || r == Rounding::to_odd ||
                         (r == Rounding::upward && negative) ||
                         (r == Rounding::downward && !negative);
  return to_finite ? f.largest_finite() : f.infinity();
}

/// Returns true if a value with leading exponent e is tiny, IEEE 754-2019, 7.5. After rounding, it
/// is tiny unless rounding to p bits with an unbounded exponent carries up to 2^emin.
HALFSCOPE_HD constexpr bool is_tiny(Format f, bool negative, std::uint64_t significand,
                                    int exponent, int e, const Modes& modes) {
  if (e >= f.emin()) return false;
  if (modes.tininess == Tininess::before_rounding || e < f.emin() - 1) return true;
  const Cut p_bits = cut_at(significand, e - f.fraction_bits() - exponent);
  return !(rounds_up(p_bits, negative, modes) && bit_width(p_bits.kept + 1) > f.precision);
}

}  // namespace detail

/// Rounds the exact value (-1)^negative * significand * 2^exponent to format f.
///
/// Derivation. Let e be the exponent of the leading bit. The last place kept is q = max(e, emin) -
/// (p - 1): because of max(), subnormals lose precision, not range. Write the significand as kept |
/// discarded at q. The decision to add one to `kept` depends only on its last bit, the discarded
/// part, the sign and the direction. Encodings of one sign are ordered like their values, so the
/// encoding is kept + (q - q_min) * 2^(p-1), and a carry out of `kept` increments the exponent
/// field. A caller with a longer significand may fold its tail into the lowest bit (sticky), if at
/// least p + 2 bits remain, and p + r + 1 for stochastic rounding with r random bits: then that bit
/// is below all bits compared here and in the cut at p bits that decides tininess.
HALFSCOPE_HD constexpr Rounded round_pack(Format f, bool negative, std::uint64_t significand,
                                          int exponent, const Modes& modes = {}) {
  const std::uint64_t sign = negative ? f.sign_mask() : 0;
  if (significand == 0) return {sign, {}};
  const int e = exponent + detail::bit_width(significand) - 1;
  const int q = (e > f.emin() ? e : f.emin()) - f.fraction_bits();
  const detail::Cut c = detail::cut_at(significand, q - exponent);
  const std::uint64_t base = static_cast<std::uint64_t>(q - f.min_quantum_exponent())
                             << f.fraction_bits();
  const std::uint64_t bits = base + c.kept + (detail::rounds_up(c, negative, modes) ? 1 : 0);
  if (e > f.emax || bits > f.largest_finite()) {
    return {sign | detail::overflow_magnitude(f, negative, modes),
            {.overflow = true, .inexact = true}};
  }
  const bool tiny = detail::is_tiny(f, negative, significand, exponent, e, modes);
  const bool flushed = modes.flush == Flush::tiny ? tiny : bits <= f.fraction_mask();
  if (flushed && modes.flush_to_zero) return {sign, {.underflow = true, .inexact = true}};
  return {sign | bits, {.underflow = tiny && c.inexact(), .inexact = c.inexact()}};
}

}  // namespace halfscope
