// SPDX-License-Identifier: Apache-2.0
// Modes that a caller passes to an operation, and flags that it returns. No state is global.
#pragma once

#include <cstdint>

#include "halfscope/number/format.hpp"

namespace halfscope {

/// Rounding directions of IEEE 754-2019, 4.3; rounding to odd (Boldo and Melquiond, IEEE TC 57(4),
/// 2008); stochastic rounding, up with a probability in proportion to the discarded part (Croci et
/// al., R. Soc. Open Sci. 9, 2022).
enum class Rounding : std::uint8_t {
  ties_to_even,
  ties_to_away,
  toward_zero,
  upward,
  downward,
  to_odd,
  stochastic
};

/// Time at which a result counts as tiny, IEEE 754-2019, 7.5. x86 and CUDA decide after rounding.
enum class Tininess : std::uint8_t { after_rounding, before_rounding };

/// Results that flush_to_zero replaces by zero. x86 flushes results that are tiny after rounding,
/// ARM results that are tiny before rounding; some units check the rounded result
/// (docs/numerics/emulator.md).
enum class Flush : std::uint8_t {
  tiny,      ///< by the tininess rule
  subnormal  ///< rounded to a subnormal number, or to zero
};

/// NaN that an operation returns, and integer for a value out of range. Flags do not depend on it.
enum class NanPolicy : std::uint8_t {
  x86,        ///< the first NaN operand, quieted; default NaN negative; integer indefinite
  canonical,  ///< RISC-V: always the positive quiet NaN; integers saturate, NaN becomes the largest
  cuda        ///< all ones (0x7FFF); integers saturate, NaN becomes 0 (32 bits) or 2^63 (64 bits)
};

/// Members may be set by name: `add(kBinary16, a, b, {.rounding = Rounding::upward})`.
struct Modes {
  Rounding rounding = Rounding::ties_to_even;
  Tininess tininess = Tininess::after_rounding;
  NanPolicy nan = NanPolicy::x86;
  bool denormals_are_zero = false;  ///< DAZ: subnormal operands count as zeros of their sign
  bool flush_to_zero = false;  ///< FTZ: results selected by `flush` become a zero of their sign,
                               ///< with underflow and inexact
  Flush flush = Flush::tiny;
  bool saturate = false;     ///< largest finite number instead of an infinity
  std::uint32_t random = 0;  ///< stochastic rounding: R, in [0, 2^random_bits)
  int random_bits = 32;      ///< stochastic rounding: r, in [1, 32]
};

/// The exceptions of IEEE 754-2019, clause 7.
struct Flags {
  bool invalid = false;
  bool divide_by_zero = false;
  bool overflow = false;
  bool underflow = false;  ///< tiny and inexact (default handling, 7.5)
  bool inexact = false;

  friend constexpr bool operator==(const Flags&, const Flags&) = default;
  HALFSCOPE_HD constexpr Flags& operator|=(const Flags& other) {
    invalid |= other.invalid;
    divide_by_zero |= other.divide_by_zero;
    overflow |= other.overflow;
    underflow |= other.underflow;
    inexact |= other.inexact;
    return *this;
  }
  friend HALFSCOPE_HD constexpr Flags operator|(Flags a, const Flags& b) { return a |= b; }
};

/// A result with its exceptions.
struct Rounded {
  std::uint64_t bits;  ///< encoding in the low `width` bits
  Flags flags;
};

}  // namespace halfscope
