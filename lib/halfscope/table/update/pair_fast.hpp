// SPDX-License-Identifier: Apache-2.0
// outcome_of() in binary32 arithmetic where that is exact enough, as in update_simd.cpp; for host
// and device. Internal to table/. See README.md in this folder, "The fast pass".
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "halfscope/number/bits.hpp"
#include "halfscope/table/update/pair_outcome.hpp"
#include "halfscope/table/update/update_block.hpp"

namespace halfscope::fast {

HALFSCOPE_HD inline std::uint32_t bits_of(float x) { return detail::bit_cast<std::uint32_t>(x); }
HALFSCOPE_HD inline float number_of(std::uint32_t bits) { return detail::bit_cast<float>(bits); }
HALFSCOPE_HD inline std::uint32_t magnitude_of(float x) { return bits_of(x) & 0x7FFFFFFF; }
HALFSCOPE_HD inline std::uint32_t fraction_of(float x) { return bits_of(x) & 0x007FFFFF; }
/// floor(log2 |x|) of a normal number.
HALFSCOPE_HD inline int binade_of(float x) { return static_cast<int>(magnitude_of(x) >> 23) - 127; }

/// Formats of weights, with conversion to encodings (ties to even) and back.
struct Binary16 {
  static constexpr Format kFormat = halfscope::kBinary16;
  HALFSCOPE_HD static std::uint16_t narrowed(float x) {
    return static_cast<__half_raw>(__float2half_rn(x)).x;
  }
  HALFSCOPE_HD static float widened(std::uint16_t bits) {
    __half_raw raw;
    raw.x = bits;
    return __half2float(__half(raw));
  }
};
struct Bfloat16 {  // the upper half of binary32
  static constexpr Format kFormat = halfscope::kBfloat16;
  HALFSCOPE_HD static std::uint16_t narrowed(float x) {
    const std::uint32_t bits = bits_of(x);
    if (magnitude_of(x) > 0x7F800000) return 0x7FFF;
    return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
  }
  HALFSCOPE_HD static float widened(std::uint16_t bits) {
    return number_of(std::uint32_t{bits} << 16);
  }
};

/// Returns true if outcome() supports the pair; false for a zero u and for infinities and NaN.
template <class W>
HALFSCOPE_HD inline bool is_common(float w16, float u) {
  constexpr auto kBitsOf = [](int binade) {
    return static_cast<std::uint32_t>(binade + 127) << 23;
  };
  constexpr std::uint32_t kEnd = kBitsOf(kEndBinade);
  constexpr std::uint32_t kUpdate = kBitsOf(kFirstUpdate), kWeight = kBitsOf(kFirstWeight);
  const std::uint32_t weight = magnitude_of(w16);
  const bool large_enough =
      W::kFormat.min_quantum_exponent() >= kFirstWeight || weight == 0 || weight >= kWeight;
  return magnitude_of(u) - kUpdate <= kEnd - kUpdate && weight <= kEnd && large_enough;
}

/// floor(log2(|h - w16 - u| / |u|)), where w16 + u = s + low exactly. h - s is exact. The rounding
/// error of subtracting `low` matters only if the significands are equal.
HALFSCOPE_HD inline int error_binade(float h, float s, float low, float u) {
  const float difference = h - s, error = difference - low;
  const std::uint32_t fe = fraction_of(error), fu = fraction_of(u);
  bool less = fe < fu;
  if (fe == fu) {
    const float rest = (difference - error) - low;
    less = rest != 0 && ((bits_of(rest) ^ bits_of(error)) >> 31) != 0;
  }
  return binade_of(error) - binade_of(u) - (less ? 1 : 0);
}

template <class W>
HALFSCOPE_HD inline PairOutcome outcome(float w16, float u) {
  const auto rounded = [](float x) { return W::widened(W::narrowed(x)); };
  const float u16 = rounded(u);
  const float h = rounded(w16 + u16);
  const float s = w16 + u;
  const float fused = rounded(s);
  const float b = s - w16;  // Knuth's TwoSum: w16 + u = s + low
  const float low = (w16 - (s - b)) + (u - b);
  const bool is_zero = w16 == 0;
  PairOutcome out = {Outcome::applied, Outcome::applied, false,    binade_of(u),
                     kNoBinade,        kNoBinade,        kNoBinade};
  if (u16 == 0) {
    out.half = Outcome::underflow;
  } else if (h == w16) {
    out.half = Outcome::swamped;
  } else if (low == 0 && h == s) {
    out.half = Outcome::exact;
  } else {
    out.error = error_binade(h, s, low, u);
  }
  if (fused == w16) {
    out.fused = Outcome::swamped;
  } else if (low == 0 && fused == s) {
    out.fused = Outcome::exact;
  }
  if (is_zero) return out;
  constexpr std::uint32_t kScale = static_cast<std::uint32_t>(W::kFormat.precision) << 23;
  out.weight_binade = binade_of(w16);
  out.ratio = out.update_binade - out.weight_binade - (fraction_of(u) < fraction_of(w16) ? 1 : 0);
  out.rule = magnitude_of(w16) > magnitude_of(u) + kScale;
  return out;
}

}  // namespace halfscope::fast
