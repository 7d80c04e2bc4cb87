// SPDX-License-Identifier: Apache-2.0
// Tests and sums of single additions. Internal to reduction/.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace halfscope::reduction {

/// Returns 1 if x is finite, else 0.
inline std::uint32_t is_finite(float x) {
  return std::fabs(x) < std::numeric_limits<float>::infinity() ? 1u : 0u;
}

/// Returns 1 if the addition is lost (the finite result `out` equals a or b, neither is 0), else 0.
inline std::uint32_t is_lost(float a, float b, float out) {
  const std::uint32_t same = (out == a ? 1u : 0u) | (out == b ? 1u : 0u);
  const std::uint32_t nonzero = (a != 0 ? 1u : 0u) & (b != 0 ? 1u : 0u);
  return same & nonzero & is_finite(out);
}

/// Adds x to high + low, where `low` collects the rounding errors of `high` (TwoSum: Knuth, The Art
/// of Computer Programming 2, 4.2.2). After K addends high + low is within about K^2 2^-106 of the
/// sum of their magnitudes (Ogita, Rump, Oishi, Accurate sum and dot product, SIAM J. Sci. Comput.
/// 26, 2005, proposition 4.5); for up to 2^12 binary16 values it is exact.
inline void add_exactly(double& high, double& low, double x) {
  const double before = high;
  high = before + x;
  const double part = high - before;
  low += (before - (high - part)) + (x - part);
}

}  // namespace halfscope::reduction
