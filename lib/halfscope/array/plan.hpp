// SPDX-License-Identifier: Apache-2.0
// Properties of a format and its modes for the vector kernels: integers, computed once per call by
// the scalar code.
#pragma once

#include <cstdint>

#include "halfscope/array/environment.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

/// Conversion of binary32 to a format of at most 22 bits of precision within binary32's exponents.
///
/// Every rounding rule is one comparison of integers: with F the first 32 bits of the discarded
/// fraction, the magnitude rounds up if and only if F > T. T is `base`, XORed with `negative` if
/// the value is negative, minus `odd` if the last place kept is odd, modulo 2^32.
struct NarrowingPlan {
  struct Threshold {
    std::uint32_t base, negative, odd;
  };

  bool same_exponents;  ///< emin is binary32's: all numbers are cut at the same place
  bool stochastic;      ///< T is the element's random number
  int random_shift;     ///< stochastic: 32 - random_bits
  Threshold threshold;
  std::int32_t fraction_bits;  ///< p - 1
  std::int32_t cut;            ///< bits dropped from a binary32 significand: 24 - p
  std::int32_t cut_base;       ///< in a subnormal result: cut_base - (exponent field)
  std::int32_t first_field;    ///< binary32's exponent field of 2^emin
  std::int32_t sign_shift;     ///< shift from binary32's sign to the format's
  std::uint32_t largest;       ///< encoding of the largest finite number
  std::uint32_t zero_below;    ///< denormals_are_zero: smaller binary32 magnitudes count as zeros
  std::uint32_t tiny_below;    ///< binary32 magnitude 2^emin
  bool flush;                  ///< tiny results become zeros, or
  bool flush_subnormal;        ///< only results with encodings below first_normal do
  std::uint32_t first_normal;  ///< encoding of 2^emin
  /// Tininess after rounding: magnitudes from near_low up to 2^emin may be 2^emin when rounded to p
  /// bits. Shifted left by near_shift, they are the fraction which that discards. near_width = 0:
  /// never.
  std::uint32_t near_low, near_width;
  int near_shift;
  bool nan_is_invalid;  ///< the format has no NaN

  /// Results for overflow, infinity and NaN, by sign: as encodings or as binary32.
  struct Special {
    std::uint32_t overflow[2], infinity[2];
    std::uint32_t nan[2];
    std::uint32_t payload;  ///< fraction bits of the binary32 NaN that are kept
  };
  Special narrow, wide;
  float smallest;  ///< the format's smallest subnormal
};

/// Conversion of a format within binary32's exponents to binary32; exact.
struct WideningPlan {
  bool same_exponents;
  std::int32_t cut;          ///< 24 - p
  std::int32_t first_field;  ///< as in NarrowingPlan
  std::int32_t sign_shift;
  std::uint32_t magnitude_mask, fraction_mask;
  std::uint32_t largest, infinity;  ///< infinity: equal to `largest` if the format has none
  std::uint32_t quiet_bit;          ///< 0: every NaN is quiet
  bool zero_subnormals;             ///< denormals_are_zero
  std::uint32_t wide_infinity[2], wide_nan[2];
  bool payload;  ///< a NaN keeps its fraction
  float smallest;
};

/// add, multiply, fused_multiply_add in a format with infinities and NaNs, through binary32.
struct ArithmeticPlan {
  Format format;
  Modes modes;
  WideningPlan wide;
  NarrowingPlan narrow;
  bool exact_products;  ///< exact in binary32 (binary16); else scalar code for extremes
  std::uint16_t infinity, quiet_bit, zero_below;
  std::uint16_t default_nan;
  bool propagate;  ///< return the first NaN operand, quieted
};

/// Returns true if binary32 can represent all values of f and NarrowingPlan's rule applies to it.
bool can_narrow(Format f);
NarrowingPlan narrowing_plan(Format f, const Modes& modes);

/// Returns true if a WideningPlan applies. Flushing subnormals of a format with binary32's
/// exponents needs the scalar code.
bool can_widen(Format f, const Modes& modes);
WideningPlan widening_plan(Format f, const Modes& modes);

enum class ArrayOperation { add, multiply, fused_multiply_add };

bool can_compute(ArrayOperation operation, Format f, const Modes& modes);
ArithmeticPlan arithmetic_plan(Format f, const Modes& modes);

/// Returns true if F16C's conversions round as the modes require: binary16, a direction that F16C
/// has, tininess after rounding, subnormals kept, no saturation. NaNs are handled separately.
bool f16c_rounds(Format f, const Modes& modes);
RoundingControl control_of(Rounding rounding);

}  // namespace halfscope
