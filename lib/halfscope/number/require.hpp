// SPDX-License-Identifier: Apache-2.0
// Preconditions of the scalar functions.
#pragma once

#include <stdexcept>

#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope::detail {

/// Reports a broken precondition: throws std::invalid_argument on the host (in a constant
/// expression, a compile error), traps on a device and in builds without exceptions.
HALFSCOPE_HD constexpr void require(bool holds, const char* what) {
  if (holds) return;
#if defined(__CUDA_ARCH__) || !defined(__cpp_exceptions)
  static_cast<void>(what);
  __builtin_trap();
#else
  throw std::invalid_argument(what);
#endif
}

HALFSCOPE_HD constexpr void require_arithmetic(Format f) {
  require(f.precision <= kBinary32.precision,
          "arithmetic: the format has more than 24 bits of precision; binary64 is for conversions");
}

HALFSCOPE_HD constexpr void require_random_bits(const Modes& modes) {
  require(modes.random_bits >= 1 && modes.random_bits <= 32,
          "stochastic rounding: random_bits is outside 1 to 32");
}

HALFSCOPE_HD constexpr void require_random(const Modes& modes) {
  require_random_bits(modes);
  require(modes.random_bits == 32 || (modes.random >> modes.random_bits) == 0,
          "stochastic rounding: random is not below 2^random_bits");
}

}  // namespace halfscope::detail
