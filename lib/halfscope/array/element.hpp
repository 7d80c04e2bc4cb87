// SPDX-License-Identifier: Apache-2.0
// What the array operations do to one element, by the scalar emulator: the definition that vector
// code and GPU kernels must equal, and the body of the latter. Conversions, add, multiply and
// fused_multiply_add of an element are the functions of those names in number/.
#pragma once

#include <cstdint>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/modes.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/number/require.hpp"

namespace halfscope::element {

/// The modes of element `index`: under stochastic rounding it has its own R, the top random_bits of
/// word `index` of the seed's sequence.
HALFSCOPE_HD constexpr Modes modes_at(const Modes& modes, std::uint64_t seed, std::uint64_t index) {
  Modes own = modes;
  if (own.rounding == Rounding::stochastic) {
    detail::require_random_bits(modes);
    own.random = random_word(seed, index) >> (32 - own.random_bits);
  }
  return own;
}

/// A binary32 encoding rounded to format f, as binary32 again. That way back is exact and no
/// operation of its own: no flag, and subnormals of f stay, whatever the modes say of subnormal
/// operands. f: at most 24 bits of precision within binary32's exponents.
HALFSCOPE_HD constexpr Rounded quantise(Format f, std::uint64_t bits, const Modes& modes = {}) {
  const Rounded narrow = convert(f, kBinary32, bits, modes);
  return {convert(kBinary32, f, narrow.bits, {.nan = modes.nan}).bits, narrow.flags};
}

}  // namespace halfscope::element
