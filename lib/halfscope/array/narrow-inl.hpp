// SPDX-License-Identifier: Apache-2.0
// Conversion of binary32 vectors to a narrow format and back with integers, for any direction and
// mode. Included once for each target of Highway.
#if defined(HALFSCOPE_ARRAY_NARROW_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFSCOPE_ARRAY_NARROW_INL
#undef HALFSCOPE_ARRAY_NARROW_INL
#else
#define HALFSCOPE_ARRAY_NARROW_INL
#endif

#include <hwy/highway.h>

#include "halfscope/array/block-inl.hpp"
#include "halfscope/array/plan.hpp"

#if HALFSCOPE_VECTORS
HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

using Integers = hn::RebindToSigned<Words>;
using Lanes = hn::Mask<Words>;

constexpr std::uint32_t kSignBit = 0x80000000, kInfinity = 0x7F800000, kQuietBit = 0x00400000;

HWY_INLINE Vector set(std::uint32_t x) { return hn::Set(Words(), x); }
HWY_INLINE hn::Vec<Integers> as_integers(Vector x) { return hn::BitCast(Integers(), x); }
HWY_INLINE FloatVector as_floats(Vector x) { return hn::BitCast(Floats(), x); }
template <class V>
HWY_INLINE Vector as_words(V x) {
  return hn::BitCast(Words(), x);
}

HWY_INLINE Vector signed_max(Vector a, std::int32_t b) {
  return as_words(hn::Max(as_integers(a), hn::Set(Integers(), b)));
}
HWY_INLINE Vector signed_min(Vector a, std::int32_t b) {
  return as_words(hn::Min(as_integers(a), hn::Set(Integers(), b)));
}
/// a > b for words below 2^31; signed comparison is cheaper before AVX-512.
HWY_INLINE Lanes above(Vector a, std::uint32_t b) {
  return hn::RebindMask(Words(), hn::Gt(as_integers(a), as_integers(set(b))));
}
HWY_INLINE Lanes below(Vector a, std::uint32_t b) {
  return hn::RebindMask(Words(), hn::Lt(as_integers(a), as_integers(set(b))));
}
/// Returns all ones in negative lanes, else 0.
HWY_INLINE Vector sign_lanes(Vector bits) {
  return as_words(hn::BroadcastSignBit(as_integers(bits)));
}
HWY_INLINE Vector by_sign(Vector bits, const std::uint32_t (&x)[2]) {
  return hn::IfThenElse(hn::MaskFromVec(sign_lanes(bits)), set(x[1]), set(x[0]));
}
/// Returns all ones in lanes where the mask is set, else 0.
HWY_INLINE Vector where(Lanes mask) { return hn::VecFromMask(Words(), mask); }

HWY_INLINE bool any(Vector x) { return !hn::AllTrue(Words(), hn::Eq(x, hn::Zero(Words()))); }

/// Exceptions of all lanes so far: an exception is raised if any bit of its vector is set.
struct Fired {
  Vector invalid, overflow, underflow, inexact;

  HWY_INLINE unsigned bits() const {
    return (any(invalid) ? kMxcsrInvalid : 0u) | (any(overflow) ? kMxcsrOverflow : 0u) |
           (any(underflow) ? kMxcsrUnderflow : 0u) | (any(inexact) ? kMxcsrInexact : 0u);
  }
};

HWY_INLINE Fired nothing_fired() {
  const Vector none = hn::Zero(Words());
  return {none, none, none, none};
}

/// A significand cut at the last place kept, see NarrowingPlan.
struct Cut {
  Vector magnitude;  ///< encoding before rounding up
  Vector fraction;   ///< F, the first 32 discarded bits
};

/// For formats with binary32's exponents: the significand is always cut at the same place.
HWY_INLINE Cut cut_fraction(const NarrowingPlan& plan, Vector magnitude) {
  return {hn::ShiftRightSame(magnitude, plan.cut), hn::ShiftLeftSame(magnitude, 32 - plan.cut)};
}

/// For other formats the place depends on the exponent, docs/numerics/emulator.md, section 2.
/// Places above 32 are treated as 32, where F is nonzero and below a half, as required. Stochastic
/// rounding compares F itself: there F is the fraction rounded up to 32 bits, since x > R / 2^32
/// with integer R if and only if ceil(2^32 x) > R.
template <bool kStochastic>
HWY_INLINE Cut cut_significand(const NarrowingPlan& plan, Vector magnitude) {
  const Vector field = signed_max(hn::ShiftRight<23>(magnitude), 1);
  const Vector significand = hn::Sub(magnitude, hn::ShiftLeft<23>(hn::Sub(field, set(1))));
  const Vector place =
      signed_max(hn::Sub(set(static_cast<std::uint32_t>(plan.cut_base)), field), plan.cut);
  const Vector near = signed_min(place, 32);
  const Vector kept = hn::Shr(significand, signed_min(near, 31));  // 31 keeps no bit of 24
  Vector fraction = hn::Shl(significand, hn::Sub(set(32), near));
  if constexpr (kStochastic) {
    const Vector far = signed_min(hn::Sub(place, near), 24);
    const Vector ones = hn::Sub(hn::Shl(set(1), far), set(1));
    fraction = hn::Shr(hn::Add(fraction, ones), far);  // far > 0: fraction < 2^24
  }
  const Vector binade =
      signed_max(hn::Sub(field, set(static_cast<std::uint32_t>(plan.first_field))), 0);
  return {hn::Add(hn::ShiftLeftSame(binade, plan.fraction_bits), kept), fraction};
}

/// Converts a magnitude of a narrow format to binary32.
HWY_INLINE Vector widen_magnitude(bool same_exponents, int cut, int first_field, float smallest,
                                  Vector magnitude) {
  const Vector shifted = hn::ShiftLeftSame(magnitude, cut);
  if (same_exponents) return shifted;
  const Vector normal =
      hn::Add(shifted, hn::ShiftLeft<23>(set(static_cast<std::uint32_t>(first_field - 1))));
  const Vector subnormal = as_words(
      hn::Mul(hn::ConvertTo(Floats(), as_integers(magnitude)), hn::Set(Floats(), smallest)));
  return hn::IfThenElse(below(shifted, 1u << 23), subnormal, normal);
}

/// Returns the threshold T without the adjustment for the last place kept.
template <bool kStochastic>
HWY_INLINE Vector threshold(const NarrowingPlan& plan, Vector bits, Vector random) {
  const NarrowingPlan::Threshold& t = plan.threshold;
  if constexpr (kStochastic) return random;
  if (t.negative == 0) return set(t.base);
  return hn::Xor(set(t.base), hn::And(sign_lanes(bits), set(t.negative)));
}

/// Handles magnitudes below 2^emin, if any lane has one: raises underflow, flushes tiny results.
HWY_INLINE void settle_tiny(const NarrowingPlan& plan, Lanes small, Vector magnitude, Vector even,
                            Vector& rounded, Vector& inexact, Fired& fired) {
  Lanes tiny = small;
  const Lanes near = hn::Lt(hn::Sub(magnitude, set(plan.near_low)), set(plan.near_width));
  if (HWY_UNLIKELY(!hn::AllFalse(Words(), near))) {
    // Some may round to 2^emin at p bits; then the kept bits are all ones, so the last is odd.
    const Lanes carries = hn::Gt(hn::ShiftLeftSame(magnitude, plan.near_shift),
                                 hn::Sub(even, set(plan.threshold.odd)));
    tiny = hn::AndNot(hn::And(near, carries), small);
  }
  if (plan.flush) {
    const Lanes flushed =
        plan.flush_subnormal ? hn::And(small, below(rounded, plan.first_normal)) : tiny;
    inexact = hn::Or(inexact, hn::IfThenElseZero(flushed, magnitude));
    rounded = hn::IfThenZeroElse(flushed, rounded);
    tiny = hn::Or(tiny, flushed);
  }
  fired.underflow = hn::Or(fired.underflow, hn::IfThenElseZero(tiny, inexact));
}

struct Beyond {
  Vector result, overflow, invalid;
};

/// Results for lanes above the largest finite number: overflow, infinity, NaN.
template <bool kWide>
HWY_INLINE Beyond narrow_beyond(const NarrowingPlan& plan, Vector bits, Vector beyond) {
  const NarrowingPlan::Special& special = kWide ? plan.wide : plan.narrow;
  const Vector magnitude = hn::And(bits, set(~kSignBit));
  const Lanes finite = below(magnitude, kInfinity), nan = above(magnitude, kInfinity);
  const Lanes quiet = hn::Ne(hn::And(bits, set(kQuietBit)), hn::Zero(Words()));
  const Vector invalid = plan.nan_is_invalid ? where(nan) : hn::AndNot(where(quiet), where(nan));
  const Vector fraction = hn::And(bits, set(special.payload));
  const Vector payload = kWide ? fraction : hn::ShiftRightSame(fraction, plan.cut);
  const Vector number =
      hn::IfThenElse(finite, by_sign(bits, special.overflow), by_sign(bits, special.infinity));
  const Vector result = hn::IfThenElse(nan, hn::Or(by_sign(bits, special.nan), payload), number);
  return {result, hn::And(beyond, where(finite)), invalid};
}

/// Converts binary32 to a narrow format, as encodings or (kWide) as binary32 values. random: R /
/// 2^r as a fraction of 32 bits. Infinities and NaNs are cut like numbers, and are then above the
/// largest finite one.
template <bool kSameExponents, bool kStochastic, bool kWide>
HWY_INLINE Vector narrow(const NarrowingPlan& plan, Vector bits, Vector random, Fired& fired) {
  Vector magnitude = hn::And(bits, set(~kSignBit));
  if (plan.zero_below != 0) {
    magnitude = hn::IfThenZeroElse(below(magnitude, plan.zero_below), magnitude);
  }
  const Cut cut = kSameExponents ? cut_fraction(plan, magnitude)
                                 : cut_significand<kStochastic>(plan, magnitude);
  const Vector even = threshold<kStochastic>(plan, bits, random);
  const Vector odd = hn::And(cut.magnitude, set(plan.threshold.odd));
  const Lanes up = hn::Gt(cut.fraction, hn::Sub(even, odd));
  Vector rounded = hn::Sub(cut.magnitude, where(up));
  Vector inexact = cut.fraction;
  const Lanes small = below(magnitude, plan.tiny_below);
  if (!hn::AllFalse(Words(), small)) {
    settle_tiny(plan, small, magnitude, even, rounded, inexact, fired);
  }
  const Lanes beyond = above(rounded, plan.largest);
  const Vector sign = hn::And(bits, set(kSignBit));
  Vector result;
  if constexpr (kWide) {
    result = hn::Or(
        sign, widen_magnitude(kSameExponents, plan.cut, plan.first_field, plan.smallest, rounded));
  } else {
    result = hn::Or(rounded, hn::ShiftRightSame(sign, plan.sign_shift));
  }
  if (HWY_UNLIKELY(!hn::AllFalse(Words(), beyond))) {
    const Beyond other = narrow_beyond<kWide>(plan, bits, where(beyond));
    const Vector special = hn::AndNot(other.overflow, where(beyond));
    result = hn::IfThenElse(beyond, other.result, result);
    inexact = hn::Or(hn::AndNot(special, inexact), other.overflow);
    fired.overflow = hn::Or(fired.overflow, other.overflow);
    fired.invalid = hn::Or(fired.invalid, other.invalid);
  }
  fired.inexact = hn::Or(fired.inexact, inexact);
  return result;
}

/// Converts a narrow format to binary32. Ignores bits above the format's width.
HWY_INLINE Vector widen(const WideningPlan& plan, Vector encoding, Fired& fired) {
  const Vector magnitude = hn::And(encoding, set(plan.magnitude_mask));
  const Vector bits = hn::ShiftLeftSame(encoding, plan.sign_shift);  // moves the sign to its place
  Vector finite = magnitude;
  if (plan.zero_subnormals) {
    finite = hn::IfThenZeroElse(below(magnitude, plan.fraction_mask + 1), magnitude);
  }
  const Vector value = hn::Or(
      widen_magnitude(plan.same_exponents, plan.cut, plan.first_field, plan.smallest, finite),
      hn::And(bits, set(kSignBit)));
  const Lanes special = above(magnitude, plan.largest);
  if (HWY_LIKELY(hn::AllFalse(Words(), special))) return value;
  const Lanes nan = above(magnitude, plan.infinity);
  const Lanes quiet = hn::Eq(hn::And(encoding, set(plan.quiet_bit)), set(plan.quiet_bit));
  fired.invalid = hn::Or(fired.invalid, hn::AndNot(where(quiet), where(nan)));
  Vector payload = hn::Zero(Words());
  if (plan.payload) {
    payload = hn::ShiftLeftSame(hn::And(magnitude, set(plan.fraction_mask)), plan.cut);
  }
  const Vector other = hn::IfThenElse(nan, hn::Or(by_sign(bits, plan.wide_nan), payload),
                                      by_sign(bits, plan.wide_infinity));
  return hn::IfThenElse(special, other, value);
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
