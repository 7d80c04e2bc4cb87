// SPDX-License-Identifier: Apache-2.0
// The array operations on one element, by the scalar emulator. They define the results of vector
// code and GPU kernels, and are the body of the GPU kernels. Conversions, add, multiply and
// fused_multiply_add of an element are the functions of those names in number/.
#pragma once

#include <cstdint>

#include "halfscope/number/convert.hpp"
#include "halfscope/number/modes.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/number/require.hpp"

namespace halfscope::element {

/// Returns the modes for element `index`. For stochastic rounding, R is the top random_bits of word
/// `index` of the seed's sequence.
HALFSCOPE_HD constexpr Modes modes_at(const Modes& modes, std::uint64_t seed, std::uint64_t index) {
  Modes own = modes;
  if (own.rounding == Rounding::stochastic) {
    detail::require_random_bits(modes);
    own.random = random_word(seed, index) >> (32 - own.random_bits);
  }
  return own;
}

/// Rounds a binary32 encoding to format f and converts it back to binary32. The conversion back is
/// exact and not a separate operation: it raises no flag and keeps subnormals of f, whatever the
/// modes for subnormal operands are. f: at most 24 bits of precision, exponents within binary32's.
HALFSCOPE_HD constexpr Rounded quantise(Format f, std::uint64_t bits, const Modes& modes = {}) {
  const Rounded narrow = convert(f, kBinary32, bits, modes);
  return {convert(kBinary32, f, narrow.bits, {.nan = modes.nan}).bits, narrow.flags};
}

}  // namespace halfscope::element
