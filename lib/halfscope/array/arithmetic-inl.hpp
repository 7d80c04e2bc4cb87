// SPDX-License-Identifier: Apache-2.0
// Vectors of 16-bit encodings: intermediate rounding of sums, and the choice of NaN results.
// Included once for each target of Highway.
#if defined(HALFSCOPE_ARRAY_ARITHMETIC_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFSCOPE_ARRAY_ARITHMETIC_INL
#undef HALFSCOPE_ARRAY_ARITHMETIC_INL
#else
#define HALFSCOPE_ARRAY_ARITHMETIC_INL
#endif

#include <hwy/highway.h>

#include "halfscope/array/block-inl.hpp"
#include "halfscope/array/job.hpp"

#if HALFSCOPE_VECTORS
HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

/// Returns true in lanes where a != b and neither is NaN.
HWY_INLINE hn::Mask<Floats> differs(FloatVector a, FloatVector b) {
#if HALFSCOPE_F16C
  return hn::Ne(a, b);  // the ordered predicate
#else
  return hn::Or(hn::Lt(a, b), hn::Lt(b, a));
#endif
}

/// p + c rounded to odd. Requires MXCSR's direction toward zero. A second rounding to at most 22
/// bits then has the result of a single rounding (Boldo and Melquiond 2008).
///
/// z = p + c, truncated, is inexact if and only if z - p, also truncated, differs from c. If z is
/// exact, so is z - p = c. Otherwise let z = p + c - e; e has the sign of z. If |p| >= |c|, z - p =
/// c - e is exact (Boldo, Graillat and Muller, ACM TOMS 44(1), 2017: faithful rounding is enough).
/// If |c| > |p|, e has the sign of c and is smaller, so |c - e| < |c|, and its truncation stays
/// below |c|. In both cases MXCSR reports inexact if and only if p + c is inexact. Sets the last
/// bit of an inexact z.
HWY_INLINE FloatVector add_to_odd(FloatVector p, FloatVector c) {
  const FloatVector z = hn::Add(p, c);
  const FloatVector last = hn::BitCast(Floats(), hn::Set(Words(), 1u));
  return hn::Or(z, hn::IfThenElseZero(differs(hn::Sub(z, p), c), last));
}

/// With `flip` = -0.0, an exact zero sum has the sign of rounding downward: -((-p) + (-c)).
HWY_INLINE FloatVector add_to_odd(FloatVector p, FloatVector c, FloatVector flip) {
  return hn::Xor(add_to_odd(hn::Xor(p, flip), hn::Xor(c, flip)), flip);
}

struct HalfOperands {
  HalfVector a, b, c;
};

using HalfLanes = hn::Mask<Halves>;

HWY_INLINE HalfVector magnitude_of(HalfVector x) {
  return hn::And(x, hn::Set(Halves(), std::uint16_t{0x7FFF}));
}

HWY_INLINE HalfLanes is_signaling(HalfVector x, const ArithmeticPlan& plan) {
  const HalfVector quiet = hn::And(x, hn::Set(Halves(), plan.quiet_bit));
  return hn::And(is_nan(x, plan.infinity), hn::Eq(quiet, hn::Zero(Halves())));
}

HWY_INLINE HalfLanes infinity_times_zero(HalfVector a, HalfVector b, const ArithmeticPlan& plan) {
  const HalfVector infinity = hn::Set(Halves(), plan.infinity), zero = hn::Zero(Halves());
  const HalfVector x = magnitude_of(a), y = magnitude_of(b);
  return hn::Or(hn::And(hn::Eq(x, infinity), hn::Eq(y, zero)),
                hn::And(hn::Eq(x, zero), hn::Eq(y, infinity)));
}

/// Applies the NaN policy from the operands alone: compilers may exchange the operands of a sum or
/// product, so the NaN that the processor chooses is not defined. Lanes of `result` that must be
/// NaN are NaN. Sets `invalid` as number/arithmetic.hpp does. With denormals_are_zero, subnormal
/// operands are already zeros.
template <ArrayOperation kOperation>
HWY_NOINLINE HalfVector choose_nans(const ArithmeticPlan& plan, const HalfOperands& x,
                                    HalfVector result, bool& invalid) {
  constexpr bool kThree = kOperation == ArrayOperation::fused_multiply_add;
  const Halves d;
  const HalfVector quiet = hn::Set(d, plan.quiet_bit);
  const HalfLanes none = hn::MaskFromVec(hn::Zero(d));
  const HalfLanes a = is_nan(x.a, plan.infinity), b = is_nan(x.b, plan.infinity);
  const HalfLanes c = kThree ? is_nan(x.c, plan.infinity) : none;
  const HalfLanes bad_product = kThree ? infinity_times_zero(x.a, x.b, plan) : none;
  HalfLanes signaling = hn::Or(is_signaling(x.a, plan), is_signaling(x.b, plan));
  if constexpr (kThree) signaling = hn::Or(signaling, is_signaling(x.c, plan));
  const HalfLanes nan = is_nan(result, plan.infinity);
  const HalfLanes made = hn::AndNot(hn::Or(hn::Or(a, b), c), nan);
  invalid |= !hn::AllFalse(d, hn::Or(hn::Or(signaling, made), bad_product));
  HalfVector chosen = hn::Set(d, plan.default_nan);
  if (plan.propagate) {
    chosen = hn::IfThenElse(hn::AndNot(bad_product, c), hn::Or(x.c, quiet), chosen);
    chosen = hn::IfThenElse(b, hn::Or(x.b, quiet), chosen);
    chosen = hn::IfThenElse(a, hn::Or(x.a, quiet), chosen);
  }
  return hn::IfThenElse(nan, chosen, result);
}

/// Processes fewer elements than a block, padded with zeros, which raise no flags.
template <class Kernel>
HWY_NOINLINE void partial_block(Kernel& kernel, const std::uint16_t* a, const std::uint16_t* b,
                                const std::uint16_t* c, std::uint16_t* out, std::size_t n,
                                std::size_t i) {
  HWY_ALIGN std::uint16_t in[3][Kernel::kBlock] = {};
  HWY_ALIGN std::uint16_t to[Kernel::kBlock];
  std::memcpy(in[0], a, n * sizeof *a);
  std::memcpy(in[1], b, n * sizeof *b);
  if (c != nullptr) std::memcpy(in[2], c, n * sizeof *c);
  kernel.template block<false>(in[0], in[1], c == nullptr ? nullptr : in[2], to, i);
  std::memcpy(out, to, n * sizeof *out);
}

/// Calls kernel.block() as in block-inl.hpp, with three inputs. `c` is null for two inputs.
template <bool kStream, class Kernel>
HWY_INLINE void blocks(Kernel& kernel, const std::uint16_t* a, const std::uint16_t* b,
                       const std::uint16_t* c, std::uint16_t* out, std::size_t i, std::size_t n) {
  Kernel own = kernel;
  for (; i + Kernel::kBlock <= n; i += Kernel::kBlock) {
    own.template block<kStream>(a + i, b + i, c == nullptr ? c : c + i, out + i, i);
  }
  kernel = own;
  if (i < n) partial_block(kernel, a + i, b + i, c == nullptr ? c : c + i, out + i, n - i, i);
}

template <bool kStream, class Kernel>
HWY_INLINE void for_each_block(Kernel& kernel, const std::uint16_t* a, const std::uint16_t* b,
                               const std::uint16_t* c, std::uint16_t* out, std::size_t n) {
  const std::size_t before = kStream ? HWY_MIN(n, to_next_line(out)) : 0;
  blocks<false>(kernel, a, b, c, out, 0, before);
  blocks<kStream>(kernel, a, b, c, out, before, n);
  if constexpr (kStream) hwy::FlushStream();
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
