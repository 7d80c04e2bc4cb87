// SPDX-License-Identifier: Apache-2.0
// The one place where rounding happens. Derivation and choices: docs/numerics.md.
#pragma once

#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/format.hpp"

namespace halfscope {

/// IEEE 754-2019, 4.3, and rounding to odd (Boldo and Melquiond, IEEE TC 57(4), 2008).
enum class Rounding : std::uint8_t {
  ties_to_even,
  ties_to_away,
  toward_zero,
  upward,
  downward,
  to_odd
};

/// When a result counts as tiny, IEEE 754-2019, 7.5. x86 and CUDA decide after rounding.
enum class Tininess : std::uint8_t { after_rounding, before_rounding };

/// The exceptions of IEEE 754-2019, clause 7, as values: nothing is global.
struct Flags {
  bool invalid = false;
  bool divide_by_zero = false;
  bool overflow = false;
  bool underflow = false;  ///< tiny and inexact (default handling, 7.5)
  bool inexact = false;

  friend constexpr bool operator==(const Flags&, const Flags&) = default;
};

struct Rounded {
  std::uint64_t bits;  ///< encoding in the low `width` bits
  Flags flags;
};

namespace detail {

/// An exact value cut at a bit position: kept * 2^q + a discarded part below 2^q.
struct Cut {
  std::uint64_t kept;
  bool half;    ///< the discarded part is at least 2^(q-1)
  bool sticky;  ///< the discarded part has a bit below 2^(q-1)
};

HALFSCOPE_HD constexpr Cut cut_at(std::uint64_t significand, int shift) {
  if (shift <= 0) return {significand << -shift, false, false};
  if (shift > 64) return {0, false, significand != 0};
  const std::uint64_t half_bit = std::uint64_t{1} << (shift - 1);
  const std::uint64_t kept = shift == 64 ? 0 : significand >> shift;
  return {kept, (significand & half_bit) != 0, (significand & (half_bit - 1)) != 0};
}

HALFSCOPE_HD constexpr bool rounds_up(const Cut& c, bool negative, Rounding mode) {
  const bool inexact = c.half || c.sticky;
  const bool odd = (c.kept & 1) != 0;
  switch (mode) {
    case Rounding::ties_to_even: return c.half && (c.sticky || odd);
    case Rounding::ties_to_away: return c.half;
    case Rounding::toward_zero: return false;
    case Rounding::upward: return inexact && !negative;
    case Rounding::downward: return inexact && negative;
    case Rounding::to_odd: return inexact && !odd;
  }
  return false;
}

/// What overflow gives, IEEE 754-2019, 7.4: infinity, or the largest finite number where the
/// direction points away from infinity. A format without infinity has NaN in its place.
HALFSCOPE_HD constexpr std::uint64_t overflow_magnitude(Format f, bool negative, Rounding mode) {
  const bool to_finite = mode == Rounding::toward_zero || mode == Rounding::to_odd ||
                         (mode == Rounding::upward && negative) ||
                         (mode == Rounding::downward && !negative);
  return to_finite ? f.largest_finite() : f.infinity();
}

}  // namespace detail

/// Rounds the exact value (-1)^negative * significand * 2^exponent to format f.
///
/// Derivation. Let e be the exponent of the leading bit. The last place kept is
/// q = max(e, emin) - (p - 1): max() is what makes subnormals lose precision, not range. Write the
/// significand as kept | H S...S at q; whether one is added to `kept` depends on H, the or of the
/// S, the sign and the direction alone. Encodings of one sign are ordered like their values, so the
/// encoding is kept + (q - q_min) * 2^(p-1), and a carry out of `kept` runs into the exponent field
/// by itself. A caller with a longer significand may fold its tail into the lowest bit (sticky), as
/// long as p + 2 bits or more are left: then that bit lies below H, here and in the cut at p bits
/// that decides tininess.
HALFSCOPE_HD constexpr Rounded round_pack(Format f, bool negative, std::uint64_t significand,
                                          int exponent, Rounding mode = Rounding::ties_to_even,
                                          Tininess tininess = Tininess::after_rounding) {
  const std::uint64_t sign = negative ? f.sign_mask() : 0;
  if (significand == 0) return {sign, {}};
  const int e = exponent + detail::bit_width(significand) - 1;
  if (e > f.emax) {
    return {sign | detail::overflow_magnitude(f, negative, mode),
            {.overflow = true, .inexact = true}};
  }
  const int q = (e > f.emin() ? e : f.emin()) - f.fraction_bits();
  const detail::Cut c = detail::cut_at(significand, q - exponent);
  const std::uint64_t base = static_cast<std::uint64_t>(q - f.min_quantum_exponent())
                             << f.fraction_bits();
  const std::uint64_t bits = base + c.kept + (detail::rounds_up(c, negative, mode) ? 1 : 0);
  if (bits > f.largest_finite()) {
    return {sign | detail::overflow_magnitude(f, negative, mode),
            {.overflow = true, .inexact = true}};
  }
  Flags flags;
  flags.inexact = c.half || c.sticky;
  if (flags.inexact && e < f.emin()) {
    // 7.5: tiny after rounding unless p bits with an unbounded exponent carry up to 2^emin.
    const detail::Cut p_bits = detail::cut_at(significand, e - f.fraction_bits() - exponent);
    const bool carries = e == f.emin() - 1 && detail::rounds_up(p_bits, negative, mode) &&
                         detail::bit_width(p_bits.kept + 1) > f.precision;
    flags.underflow = tininess == Tininess::before_rounding || !carries;
  }
  return {sign | bits, flags};
}

}  // namespace halfscope
