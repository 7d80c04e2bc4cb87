// SPDX-License-Identifier: Apache-2.0
// add, multiply and exact fused_multiply_add, with run-time dispatch to the widest vectors.
//
// All compute through binary32, docs/numerics/emulator.md. Its 24 bits are 2 * 11 + 2, so a
// binary16 sum or product rounded to nearest in binary32 and then to binary16 equals a single
// rounding. Directed roundings may be applied twice; all other cases use rounding to odd.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/array/arithmetic_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "halfscope/array/arithmetic-inl.hpp"
#include "halfscope/array/narrow-inl.hpp"
#include "halfscope/array/random-inl.hpp"
#include "halfscope/array/scalar.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {
#if HALFSCOPE_VECTORS

using Op = ArrayOperation;

#if HALFSCOPE_F16C
/// binary16 with one of F16C's directions. MXCSR has the same; for fma, toward zero.
template <Op kOperation, int kDirection>
struct ComputeByF16c {
  static constexpr std::size_t kBlock = 2 * kLanes;
  static constexpr bool kDown = kDirection == static_cast<int>(RoundingControl::down);
  ArithmeticPlan plan;
  bool invalid = false;

  static HWY_INLINE FloatVector in_binary32(const HalfOperands& x) {
    const FloatVector a = widen_by_f16c(x.a), b = widen_by_f16c(x.b);
    if constexpr (kOperation == Op::add) return hn::Add(a, b);
    if constexpr (kOperation == Op::multiply) return hn::Mul(a, b);
    const FloatVector product = hn::Mul(a, b), c = widen_by_f16c(x.c);  // exact: 22 bits
    if constexpr (kDown) return add_to_odd(product, c, hn::Set(Floats(), -0.0f));
    return add_to_odd(product, c);
  }
  static HWY_INLINE HalfOperands operands(const std::uint16_t* a, const std::uint16_t* b,
                                          const std::uint16_t* c) {
    const Halves d;
    return {hn::LoadU(d, a), hn::LoadU(d, b), c == nullptr ? hn::Zero(d) : hn::LoadU(d, c)};
  }

  template <bool kStream>
  HWY_INLINE void block(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                        std::uint16_t* out, std::size_t) {
    const bool three = kOperation == Op::fused_multiply_add;
    const HalfOperands x = operands(a, b, three ? c : nullptr);
    const HalfOperands y = operands(a + kLanes, b + kLanes, three ? c + kLanes : nullptr);
    const FloatVector wide_x = in_binary32(x), wide_y = in_binary32(y);
    HalfVector narrow_x = narrow_by_f16c<kDirection>(wide_x);
    HalfVector narrow_y = narrow_by_f16c<kDirection>(wide_y);
    if (HWY_UNLIKELY(!hn::AllFalse(Floats(), hn::Or(hn::IsNaN(wide_x), hn::IsNaN(wide_y))))) {
      narrow_x = choose_nans<kOperation>(plan, x, narrow_x, invalid);
      narrow_y = choose_nans<kOperation>(plan, y, narrow_y, invalid);
    }
    store<kStream>(narrow_x, out);
    store<kStream>(narrow_y, out + kLanes);
  }
};

template <Op kOperation, int kDirection>
Raised by_f16c(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
               const std::uint16_t* c, std::uint16_t* out, std::size_t n) {
  ComputeByF16c<kOperation, kDirection> kernel = {job.plan};
  if (job.stream) {
    for_each_block<true>(kernel, a, b, c, out, n);
  } else {
    for_each_block<false>(kernel, a, b, c, out, n);
  }
  return {kernel.invalid ? kMxcsrInvalid : 0u, kMxcsrOverflow | kMxcsrUnderflow | kMxcsrInexact};
}

Raised by_f16c(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
               const std::uint16_t* c, std::uint16_t* out, std::size_t n) {
  if (job.operation == Op::add) return by_f16c<Op::add, kControlled>(job, a, b, c, out, n);
  if (job.operation == Op::multiply) {
    return by_f16c<Op::multiply, kControlled>(job, a, b, c, out, n);
  }
  constexpr Op kFma = Op::fused_multiply_add;
  switch (control_of(job.options.modes.rounding)) {
    case RoundingControl::nearest: return by_f16c<kFma, 0>(job, a, b, c, out, n);
    case RoundingControl::down: return by_f16c<kFma, 1>(job, a, b, c, out, n);
    case RoundingControl::up: return by_f16c<kFma, 2>(job, a, b, c, out, n);
    case RoundingControl::zero: break;
  }
  return by_f16c<kFma, 3>(job, a, b, c, out, n);
}
#endif  // HALFSCOPE_F16C

/// Returns true for a binary32 result below the normal range, with nonzero operands, or above the
/// largest number: it may have lost bits or flags.
HWY_INLINE Lanes lost(FloatVector result) {
  const Vector magnitude = hn::And(as_words(result), set(~kSignBit));
  return above(magnitude, kInfinity - 2);
}
HWY_INLINE Lanes lost(FloatVector product, FloatVector a, FloatVector b) {
  const FloatVector zero = hn::Zero(Floats());
  const Lanes small = below(hn::And(as_words(product), set(~kSignBit)), 1u << 23);
  const auto nonzero = hn::Not(hn::Or(hn::Eq(a, zero), hn::Eq(b, zero)));
  return hn::Or(lost(product), hn::And(small, hn::RebindMask(Words(), nonzero)));
}

/// Any direction and mode, with integers. MXCSR's direction is toward zero.
template <Op kOperation, bool kSameExponents, bool kStochastic>
struct Compute {
  static constexpr std::size_t kBlock = kLanes;
  ArithmeticPlan plan;
  ArrayOptions options;
  Fired fired;
  const std::uint32_t* random = nullptr;  ///< word i belongs to element i
  std::size_t first = 0;                  ///< index in the call of the blocks' element 0
  bool invalid = false;
  Flags of_scalar = {};

  HWY_INLINE Vector operand(const std::uint16_t* p) const {
    const Vector bits = load(p);
    const Lanes zero = below(hn::And(bits, set(0x7FFFu)), plan.zero_below);
    return hn::IfThenElse(zero, hn::And(bits, set(0x8000u)), bits);
  }
  HWY_INLINE FloatVector value(Vector encoding) const {
    Fired ignored = nothing_fired();
    return as_floats(widen(plan.wide, encoding, ignored));
  }
  /// Returns the result before rounding; sets `unsafe` in lanes that need the scalar code.
  HWY_INLINE FloatVector in_binary32(Vector x, Vector y, Vector z, Lanes& unsafe) const {
    const FloatVector a = value(x), b = value(y);
    const bool down = plan.modes.rounding == Rounding::downward;
    const FloatVector flip = as_floats(set(down ? kSignBit : 0u));
    if constexpr (kOperation == Op::add) {
      const FloatVector sum = add_to_odd(a, b, flip);
      unsafe = lost(sum);
      return sum;
    }
    const FloatVector product = hn::Mul(a, b);
    unsafe = lost(product, a, b);
    if constexpr (kOperation == Op::multiply) return product;
    const FloatVector sum = add_to_odd(product, value(z), flip);
    unsafe = hn::Or(unsafe, lost(sum));
    return sum;
  }

  template <bool>
  HWY_INLINE void block(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                        std::uint16_t* out, std::size_t i) {
    const Vector x = operand(a), y = operand(b);
    const Vector z = kOperation == Op::fused_multiply_add ? operand(c) : x;
    Lanes unsafe;
    const FloatVector wide = in_binary32(x, y, z, unsafe);
    if (!plan.exact_products && !hn::AllFalse(Words(), unsafe)) {
      of_scalar |=
          scalar::compute(kOperation, plan.format, options, a, b, c, out, first + i, kBlock);
      return;
    }
    Vector r = hn::Zero(Words());
    if constexpr (kStochastic) {
      r = hn::ShiftRightSame(hn::LoadU(Words(), random + i), plan.narrow.random_shift);
      r = hn::ShiftLeftSame(r, plan.narrow.random_shift);
    }
    const Vector rounded =
        narrow<kSameExponents, kStochastic, false>(plan.narrow, as_words(wide), r, fired);
    HalfVector result = hn::TruncateTo(Halves(), rounded);
    if (HWY_UNLIKELY(!hn::AllFalse(Floats(), hn::IsNaN(wide)))) {
      const Halves d;
      result = choose_nans<kOperation>(
          plan, {hn::TruncateTo(d, x), hn::TruncateTo(d, y), hn::TruncateTo(d, z)}, result,
          invalid);
    }
    hn::StoreU(result, Halves(), out);
  }

  HWY_INLINE Raised raised() const {
    return {fired.bits() | mxcsr_bits(of_scalar) | (invalid ? kMxcsrInvalid : 0u), 0};
  }
};

template <Op kOperation, bool kSameExponents>
Raised by_vectors(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
                  const std::uint16_t* c, std::uint16_t* out, std::size_t first, std::size_t n) {
  Compute<kOperation, kSameExponents, false> kernel = {job.plan, job.options, nothing_fired()};
  kernel.first = first;
  for_each_block<false>(kernel, a, b, c, out, n);
  return kernel.raised();
}

/// Among the three operations, only a product is exact in binary32.
template <bool kSameExponents>
Raised multiply_stochastic(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
                           std::uint16_t* out, std::size_t first, std::size_t n) {
  constexpr std::size_t kChunk = 1024;
  HWY_ALIGN std::uint32_t random[kChunk + 2 * kRandomSlack];
  Compute<Op::multiply, kSameExponents, true> kernel = {job.plan, job.options, nothing_fired()};
  for (std::size_t done = 0; done < n; done += kChunk) {
    const std::size_t count = HWY_MIN(kChunk, n - done);
    const std::uint64_t index = job.options.first_index + first + done;
    fill_random(job.options.seed, index / 4, index % 4 + count, random);
    kernel.random = random + index % 4;
    kernel.first = first + done;
    for_each_block<false>(kernel, a + done, b + done, nullptr, out + done, count);
  }
  return kernel.raised();
}

template <bool kSameExponents>
Raised by_vectors(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
                  const std::uint16_t* c, std::uint16_t* out, std::size_t first, std::size_t n) {
  switch (job.operation) {
    case Op::add: return by_vectors<Op::add, kSameExponents>(job, a, b, c, out, first, n);
    case Op::multiply:
      if (job.plan.narrow.stochastic) {
        return multiply_stochastic<kSameExponents>(job, a, b, out, first, n);
      }
      return by_vectors<Op::multiply, kSameExponents>(job, a, b, c, out, first, n);
    case Op::fused_multiply_add: break;
  }
  return by_vectors<Op::fused_multiply_add, kSameExponents>(job, a, b, c, out, first, n);
}
#endif  // HALFSCOPE_VECTORS

Raised compute(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
               const std::uint16_t* c, std::uint16_t* out, std::size_t first, std::size_t n) {
#if HALFSCOPE_F16C
  if (job.way == Way::f16c) return by_f16c(job, a, b, c, out, n);
#endif
#if HALFSCOPE_VECTORS
  if (job.way != Way::scalar) {
    return job.plan.narrow.same_exponents ? by_vectors<true>(job, a, b, c, out, first, n)
                                          : by_vectors<false>(job, a, b, c, out, first, n);
  }
#endif
  const Flags flags =
      scalar::compute(job.operation, job.plan.format, job.options, a, b, c, out, first, n);
  return {mxcsr_bits(flags), 0};
}

/// Returns the MXCSR direction that the kernel requires.
RoundingControl control_for([[maybe_unused]] const ArithmeticJob& job) {
#if HALFSCOPE_F16C
  if (job.way == Way::f16c && job.operation != ArrayOperation::fused_multiply_add) {
    return control_of(job.options.modes.rounding);
  }
#endif
  return RoundingControl::zero;
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(compute);
HWY_EXPORT(control_for);

Flags compute_part(const ArithmeticJob& job, const std::uint16_t* a, const std::uint16_t* b,
                   const std::uint16_t* c, std::uint16_t* out, std::size_t first, std::size_t n) {
  const FloatEnvironment environment(HWY_DYNAMIC_DISPATCH(control_for)(job));
  return environment.flags(HWY_DYNAMIC_DISPATCH(compute)(job, a, b, c, out, first, n));
}

}  // namespace halfscope
#endif
