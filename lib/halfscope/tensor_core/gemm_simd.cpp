// SPDX-License-Identifier: Apache-2.0
// Steps of a Tensor Core on many outputs at once, one output per lane, with run-time dispatch to
// the widest vectors.
//
// A product of two operands is exact in binary32, and so is the product times 2^(F - E) unless it
// is below 1 (gemm_job.hpp): the conversion to an integer cuts it to the grid. With n products
// below 4, their sum is below n * 2^(F + 2) <= 2^31. Adding C, which is below 2^(F + 1) on the
// grid, may need a 33rd bit, the sign.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/tensor_core/gemm_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "halfscope/array/narrow-inl.hpp"
#include "halfscope/tensor_core/gemm_job.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {
#if HALFSCOPE_VECTORS
namespace {

using tensor_core::Accumulator;
using tensor_core::kLeastAlignment;
using tensor_core::kLeastProduct;
using tensor_core::kNoExponent;
using tensor_core::StepRange;
using tensor_core::Unit;
using IntegerVector = hn::Vec<Integers>;
using Shorts = hn::ScalableTag<std::int16_t>;
using ShortVector = hn::Vec<Shorts>;

constexpr std::size_t kWidth = 2 * kLanes;

HWY_INLINE IntegerVector integer(std::int32_t x) { return hn::Set(Integers(), x); }

/// Truncates. |x| < 2^31, so Highway's handling of larger numbers is not needed.
HWY_INLINE IntegerVector truncated(FloatVector x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return IntegerVector{_mm512_cvttps_epi32(x.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return IntegerVector{_mm256_cvttps_epi32(x.raw)};
#elif HWY_ARCH_X86
  return IntegerVector{_mm_cvttps_epi32(x.raw)};
#else
  return hn::ConvertTo(Integers(), x);
#endif
}

/// A unit's parameters for the kernel.
struct Constants {
  explicit Constants(const Unit& unit, Accumulator d) {
    const bool half = d == Accumulator::binary16;
    const int floor = half ? unit.floor16 : unit.floor32;
    least = HWY_MAX(floor, kLeastAlignment);
    fraction_bits = unit.fraction_bits;
    least_c_field = !half ? 1 : unit.normalises_c ? 127 - 24 : 127 - 14;
    kept_of_sum = ~0u << unit.zero_bits32;
    kept_of_c = ~0u << HWY_MAX(unit.zero_bits32, 23 - unit.fraction_bits);
    negative_zero = unit.negative_zero;
  }
  int least;  ///< least exponent of the alignment
  int fraction_bits;
  int least_c_field;  ///< least exponent field of C
  std::uint32_t kept_of_sum, kept_of_c;
  bool negative_zero;
};

/// The exact sum, in units of 2^grid.
struct Sum {
  Vector magnitude;
  Vector sign;  ///< only the sign bit
  IntegerVector grid;
};

/// C + products; both are sums on the grid.
HWY_INLINE Sum signed_sum(IntegerVector products, IntegerVector c, IntegerVector grid) {
  const IntegerVector sum = hn::Add(products, c);
  const IntegerVector carried = hn::And(hn::Xor(products, sum), hn::Xor(c, sum));
  const IntegerVector negative = hn::BroadcastSignBit(hn::Xor(sum, carried));
  const IntegerVector magnitude = hn::Sub(hn::Xor(sum, negative), negative);
  return {as_words(magnitude), hn::And(as_words(negative), set(kSignBit)), grid};
}

/// Returns the integers, rounded to nearest in binary32, times 2^grid; undefined for 0.
HWY_INLINE Vector scaled(Vector integers, IntegerVector grid) {
  const FloatVector value = hn::ConvertTo(Floats(), integers);
  return hn::Add(as_words(value), as_words(hn::ShiftLeft<23>(grid)));
}

/// Truncates to binary32. Without the bit below the 24th, rounding to nearest never rounds up.
HWY_INLINE Vector magnitude32(const Sum& sum) {
  const Vector cut = hn::AndNot(hn::ShiftRight<24>(sum.magnitude), sum.magnitude);
  return hn::Min(scaled(cut, sum.grid), set(kInfinity));
}

/// Rounds to binary16, to nearest even; the result is in binary32.
HWY_INLINE Vector magnitude16(const Sum& sum) {
  // Above 24 bits the lowest 8 are folded into a sticky bit; binary16 keeps none of them.
  const Vector low = hn::And(sum.magnitude, set(0xFF));
  const Vector sticky = hn::And(hn::Add(low, set(0xFF)), set(0x100));
  const Vector shorter = hn::Or(hn::AndNot(set(0xFF), sum.magnitude), sticky);
  const Lanes is_short = hn::Eq(hn::ShiftRight<24>(sum.magnitude), hn::Zero(Words()));
  const Vector wide = scaled(hn::IfThenElse(is_short, sum.magnitude, shorter), sum.grid);
#if HALFSCOPE_F16C
  return as_words(widen_by_f16c(narrow_by_f16c<0>(as_floats(wide))));
#else
  const Vector last = hn::And(hn::ShiftRight<13>(wide), set(1));
  Vector rounded = hn::And(hn::Add(wide, hn::Add(set(0xFFF), last)), set(~0x1FFFu));
  rounded = hn::IfThenElse(above(rounded, 0x477FE000u), set(kInfinity), rounded);
  // Below 2^-14 binary16's steps are 2^-24, as binary32's are in [0.5, 1).
  const FloatVector half = hn::Set(Floats(), 0.5f);
  const FloatVector small = hn::Sub(hn::Add(as_floats(wide), half), half);
  return hn::IfThenElse(below(wide, 0x38800000u), as_words(small), rounded);
#endif
}

template <bool kHalf>
HWY_INLINE Vector rounded(const Constants& constants, const Sum& sum) {
  const Lanes zero = hn::Eq(sum.magnitude, hn::Zero(Words()));
  Vector magnitude = kHalf ? magnitude16(sum) : magnitude32(sum);
  if constexpr (!kHalf) magnitude = hn::And(magnitude, set(constants.kept_of_sum));
  const Vector number = hn::IfThenZeroElse(zero, hn::Or(magnitude, sum.sign));
  if (constants.negative_zero) return number;
  return hn::IfThenZeroElse(hn::Eq(number, set(kSignBit)), number);
}

/// One vector of outputs: C, and the largest exponent of the products.
template <bool kHalf>
struct Outputs {
  HWY_INLINE Outputs(const Constants& constants, const float* sums, IntegerVector of_products)
      : c(load(sums)), product(of_products) {
    const IntegerVector least = hn::Max(of_products, integer(constants.least));
    const Vector magnitude = hn::And(c, set(~kSignBit));
    const IntegerVector field =
        hn::Max(as_integers(hn::ShiftRight<23>(magnitude)), integer(constants.least_c_field));
    largest = hn::Max(least, hn::Sub(field, integer(127)));
    if constexpr (kHalf) {  // a zero has no exponent; in binary32 its exponent is below all others
      largest =
          hn::IfThenElse(hn::Eq(as_integers(magnitude), hn::Zero(Integers())), least, largest);
    }
    const IntegerVector exponent = hn::Sub(integer(constants.fraction_bits + 127), largest);
    scale = hn::BitCast(Floats(), hn::ShiftLeft<23>(exponent));
  }

  HWY_INLINE IntegerVector on_grid(FloatVector x) const { return truncated(hn::Mul(x, scale)); }

  HWY_INLINE Vector result(const Constants& constants, IntegerVector products) const {
    const IntegerVector grid = hn::Sub(largest, integer(constants.fraction_bits));
    const Sum sum = signed_sum(products, on_grid(as_floats(c)), grid);
    Vector d = rounded<kHalf>(constants, sum);
    if constexpr (!kHalf) {  // all products are zero: C may be below the kernel's grid
      const Vector kept = hn::And(c, set(constants.kept_of_c));
      const Lanes none = hn::RebindMask(Words(), hn::Lt(product, integer(kLeastAlignment)));
      const Vector alone = hn::IfThenZeroElse(hn::Eq(kept, set(kSignBit)), kept);
      d = hn::IfThenElse(none, alone, d);
    }
    const Lanes special = above(hn::And(c, set(~kSignBit)), kInfinity - 1);
    return hn::IfThenElse(special, c, d);
  }

  Vector c;
  IntegerVector product, largest;  ///< exponents of the products and of the alignment
  FloatVector scale;
};

struct Operands {
  const float* a;
  const std::uint32_t* a_exponents;
  const float* b;
  const std::int16_t* b_exponents;
};

/// Returns true if the largest exponent of any lane's products is too small for the kernel.
HWY_INLINE bool too_small(ShortVector largest) {
  const Shorts d;
  const auto small = hn::Lt(largest, hn::Set(d, std::int16_t{kLeastProduct}));
  const auto nonzero = hn::Gt(largest, hn::Set(d, std::int16_t{kNoExponent / 2}));
  return !hn::AllFalse(d, hn::And(small, nonzero));
}

/// Returns false if the kernel does not support the products.
template <bool kHalf>
HWY_INLINE bool step(const Constants& constants, const Operands& in, int count, float* sums) {
  const Shorts d;
  ShortVector largest = hn::Set(d, std::int16_t{kNoExponent});
  for (int i = 0; i < count; ++i) {
    const ShortVector a = hn::BitCast(d, set(in.a_exponents[i]));
    const ShortVector b = hn::LoadU(d, in.b_exponents + static_cast<std::size_t>(i) * kWidth);
    largest = hn::Max(largest, hn::Add(a, b));
  }
  if (HWY_UNLIKELY(too_small(largest))) return false;
  const Outputs<kHalf> low(constants, sums, hn::PromoteTo(Integers(), hn::LowerHalf(largest)));
  const Outputs<kHalf> high(constants, sums + kLanes,
                            hn::PromoteTo(Integers(), hn::UpperHalf(hn::Half<Shorts>(), largest)));
  IntegerVector low_sum = hn::Zero(Integers()), high_sum = hn::Zero(Integers());
  for (int i = 0; i < count; ++i) {
    const FloatVector a = hn::Set(Floats(), in.a[i]);
    const float* const b = in.b + static_cast<std::size_t>(i) * kWidth;
    low_sum = hn::Add(low_sum, low.on_grid(hn::Mul(a, hn::LoadU(Floats(), b))));
    high_sum = hn::Add(high_sum, high.on_grid(hn::Mul(a, hn::LoadU(Floats(), b + kLanes))));
  }
  store<false>(low.result(constants, low_sum), sums);
  store<false>(high.result(constants, high_sum), sums + kLanes);
  return true;
}

template <bool kHalf>
void run(const Unit& unit, const tensor_core::RowsOfA& a, const tensor_core::PanelOfB& b,
         std::span<const StepRange> steps, float* sums, std::uint8_t* by_chain) {
  const Constants constants(unit, kHalf ? Accumulator::binary16 : Accumulator::binary32);
  for (const StepRange& one : steps) {
    const auto first = static_cast<std::size_t>(one.first);
    for (std::size_t i = 0; i < a.count; ++i) {
      if (by_chain[i] != 0) continue;
      const std::size_t at = i * a.stride + first;
      const Operands in = {a.values + at, a.exponents + at, b.values + first * kWidth,
                           b.exponents + first * kWidth};
      if (!step<kHalf>(constants, in, one.count, sums + i * kWidth)) by_chain[i] = 1;
    }
  }
}

}  // namespace
#endif

std::size_t tensor_core_width() {
#if HALFSCOPE_VECTORS
  return kWidth;
#else
  return tensor_core::kPlainWidth;
#endif
}

void tensor_core_steps(const tensor_core::Unit& unit, tensor_core::Accumulator d,
                       const tensor_core::RowsOfA& a, const tensor_core::PanelOfB& b,
                       std::span<const tensor_core::StepRange> steps, float* sums,
                       std::uint8_t* by_chain) {
#if HALFSCOPE_VECTORS
  if (d == Accumulator::binary16) return run<true>(unit, a, b, steps, sums, by_chain);
  run<false>(unit, a, b, steps, sums, by_chain);
#else
  tensor_core::run_plain_steps(unit, d, a, b, steps, sums, by_chain);
#endif
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(tensor_core_width);
HWY_EXPORT(tensor_core_steps);

namespace tensor_core {

std::size_t panel_width() { return HWY_DYNAMIC_DISPATCH(tensor_core_width)(); }

bool has_kernel(const Unit& unit) {
  const bool fits =
      unit.fraction_bits >= 10 && unit.fraction_bits <= 25 &&
      static_cast<std::int64_t>(unit.length) << (unit.fraction_bits + 2) <= std::int64_t{1} << 31;
  const bool usual = unit.round16 == Rounding::ties_to_even &&
                     unit.round32 == Rounding::toward_zero && unit.infinite32 &&
                     !unit.normalises_products && !unit.zeros_align && !unit.by_way_of_32 &&
                     !(unit.negative_zero && unit.zero_bits32 > 0);
  return fits && usual && unit.floor32 < kBinary32.emin();
}

void run_steps(const Unit& unit, Accumulator d, const RowsOfA& a, const PanelOfB& b,
               std::span<const StepRange> steps, float* sums, std::uint8_t* by_chain) {
  HWY_DYNAMIC_DISPATCH(tensor_core_steps)(unit, d, a, b, steps, sums, by_chain);
}

}  // namespace tensor_core
}  // namespace halfscope
#endif
