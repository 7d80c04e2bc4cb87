// SPDX-License-Identifier: Apache-2.0
// What vector kernels need to know of a format and its modes: integers, computed once a call by the
// scalar code.
#pragma once

#include <cstdint>

#include "halfscope/array/environment.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

/// Binary32 to a format of at most 22 bits of precision within binary32's exponents.
///
/// Every rounding rule is one comparison of integers: with F the first 32 bits of the discarded
/// fraction, the magnitude rounds up if and only if F > T. T is `base`, its bits turned where the
/// value is negative (`negative`), less 1 where the last place kept is odd (`odd`), modulo 2^32.
struct NarrowingPlan {
  struct Threshold {
    std::uint32_t base, negative, odd;
  };

  bool
      same_exponents;  ///< emin is binary32's: each binade is cut at the same place, subnormals too
  bool stochastic;     ///< T is each element's random number
  int random_shift;    ///< stochastic: 32 - random_bits
  Threshold threshold;
  std::int32_t fraction_bits;  ///< p - 1
  std::int32_t cut;            ///< places a binary32 significand loses in a normal result: 24 - p
  std::int32_t cut_base;       ///< ... and cut_base - (exponent field) in a subnormal one
  std::int32_t first_field;    ///< binary32's exponent field of 2^emin
  std::int32_t sign_shift;     ///< from binary32's sign to the format's
  std::uint32_t largest;       ///< encoding of the largest finite number
  std::uint32_t zero_below;    ///< binary32 magnitudes below count as zeros: denormals are zero
  std::uint32_t tiny_below;    ///< binary32 magnitude 2^emin
  bool flush;                  ///< tiny results become zeros, or
  bool flush_subnormal;        ///< ... those whose encoding is below first_normal
  std::uint32_t first_normal;  ///< encoding of 2^emin
  /// Tininess after rounding: magnitudes from near_low up to 2^emin may round to p bits as 2^emin;
  /// shifted left by near_shift they are the fraction that this discards. near_width = 0: never.
  std::uint32_t near_low, near_width;
  int near_shift;
  bool nan_is_invalid;  ///< the format has no NaN

  /// What stands for overflow, infinity and NaN, of either sign: as encoding or as binary32 again.
  struct Special {
    std::uint32_t overflow[2], infinity[2];
    std::uint32_t nan[2];
    std::uint32_t payload;  ///< fraction bits of the binary32 NaN that are kept
  };
  Special narrow, wide;
  float smallest;  ///< the format's smallest subnormal
};

/// A format within binary32's exponents to binary32: exact.
struct WideningPlan {
  bool same_exponents;
  std::int32_t cut;          ///< 24 - p
  std::int32_t first_field;  ///< as in NarrowingPlan
  std::int32_t sign_shift;
  std::uint32_t magnitude_mask, fraction_mask;
  std::uint32_t largest, infinity;  ///< infinity: nothing above `largest` is one: largest
  std::uint32_t quiet_bit;          ///< 0: every NaN is quiet
  bool zero_subnormals;             ///< denormals are zero
  std::uint32_t wide_infinity[2], wide_nan[2];
  bool payload;  ///< a NaN keeps its fraction
  float smallest;
};

/// add, multiply, fused_multiply_add in a format with infinities and NaNs, by way of binary32.
struct ArithmeticPlan {
  Format format;
  Modes modes;
  WideningPlan wide;
  NarrowingPlan narrow;
  bool exact_products;  ///< in binary32, always (binary16); if not, extreme ones need the scalar
                        ///< code
  std::uint16_t infinity, quiet_bit, zero_below;
  std::uint16_t default_nan;
  bool propagate;  ///< the first operand that is a NaN, quieted
};

/// The exact values of f fit binary32, and its encodings are rounded by the rule above.
bool can_narrow(Format f);
NarrowingPlan narrowing_plan(Format f, const Modes& modes);

/// Flushing subnormals of a format with binary32's exponents is left to the scalar code.
bool can_widen(Format f, const Modes& modes);
WideningPlan widening_plan(Format f, const Modes& modes);

enum class ArrayOperation { add, multiply, fused_multiply_add };

bool can_compute(ArrayOperation operation, Format f, const Modes& modes);
ArithmeticPlan arithmetic_plan(Format f, const Modes& modes);

/// F16C's conversions round as asked: binary16, a direction they have, tininess after rounding,
/// subnormals kept, infinities not replaced. NaNs are another matter.
bool f16c_rounds(Format f, const Modes& modes);
RoundingControl control_of(Rounding rounding);

}  // namespace halfscope
