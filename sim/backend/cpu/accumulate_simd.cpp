// SPDX-License-Identifier: Apache-2.0
// Sums of products kept in binary16 or bfloat16, with run-time dispatch to the widest vectors.
//
// A product of two such values is exact in binary32. The sum is rounded to odd in binary32; a
// second rounding to at most 22 bits is then free of double rounding errors (Boldo and Melquiond
// 2008). The error of the sum is Knuth's TwoSum (The Art of Computer Programming 2, 4.2.2, theorem
// B). Bfloat16 has binary32's exponents, so products can overflow or underflow; the scalar emulator
// computes these.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/backend/cpu/accumulate_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>
#include <vector>

#include "halfscope/number/arithmetic.hpp"
#include "sim/backend/cpu/product.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::sim::backend::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<std::uint32_t>;
using V = hn::Vec<Floats>;
using W = hn::Vec<Words>;

constexpr std::size_t kMostLanes = hn::MaxLanes(Floats());

HWY_INLINE W bits(V x) { return hn::BitCast(Words(), x); }
HWY_INLINE V value(W x) { return hn::BitCast(Floats(), x); }
HWY_INLINE W word(std::uint32_t x) { return hn::Set(Words(), x); }

/// Returns a + b rounded to odd. Infinities and NaN are returned as the addition's result.
HWY_INLINE V add_to_odd(V a, V b) {
  const V sum = hn::Add(a, b);
  const V b_part = hn::Sub(sum, a);
  const V error = hn::Add(hn::Sub(a, hn::Sub(sum, b_part)), hn::Sub(b, b_part));
  const V zero = hn::Zero(Floats());
  const auto inexact = hn::Or(hn::Lt(error, zero), hn::Lt(zero, error));  // false for NaN
  const W even = hn::Sub(hn::And(bits(sum), word(1)), word(1));           // all ones, or zero
  // Move one step towards the error: the magnitude grows if the error has the sum's sign.
  const hn::RebindToSigned<Words> d;
  const auto opposed = hn::ShiftRight<31>(hn::BitCast(d, hn::Xor(bits(error), bits(sum))));
  const W step = hn::Or(hn::BitCast(Words(), opposed), word(1));
  const W inexact_bits = bits(hn::VecFromMask(Floats(), inexact));
  return value(hn::Add(bits(sum), hn::And(step, hn::And(inexact_bits, even))));
}

/// Rounds magnitude words at the bit `kDropped`, ties to even.
template <int kDropped>
HWY_INLINE W nearest(W magnitude) {
  const W last = hn::And(hn::ShiftRight<kDropped>(magnitude), word(1));
  const W half = word((1u << (kDropped - 1)) - 1);
  return hn::And(hn::Add(magnitude, hn::Add(half, last)), word(~((1u << kDropped) - 1)));
}

constexpr std::uint32_t kSign = 0x80000000u, kNan = 0x7FC00000u, kInfinite = 0x7F800000u;

struct Binary16 {
  /// Returns a * b + c, rounded to the narrow type.
  static HWY_INLINE V fused(V a, V b, V c) { return round(add_to_odd(hn::Mul(a, b), c)); }

  static HWY_INLINE V round(V x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, Floats> d;  // F16C
    return hn::PromoteTo(Floats(), hn::DemoteTo(d, x));
#else
    const W magnitude = hn::And(bits(x), word(~kSign)), sign = hn::And(bits(x), word(kSign));
    W rounded = nearest<13>(magnitude);
    rounded = hn::IfThenElse(hn::Gt(rounded, word(0x477FE000u)), word(kInfinite), rounded);
    // Below 2^-14 the spacing is 2^-24, as in binary32 in [0.5, 1).
    const V half = hn::Set(Floats(), 0.5f);
    const V small = hn::Sub(hn::Add(value(magnitude), half), half);
    rounded = hn::IfThenElse(hn::Lt(magnitude, word(0x38800000u)), bits(small), rounded);
    rounded = hn::IfThenElse(hn::Gt(magnitude, word(kInfinite)), word(kNan), rounded);
    return value(hn::Or(rounded, sign));
#endif
  }
};

struct Bfloat16 {
  static HWY_INLINE V fused(V a, V b, V c) {
    const V product = hn::Mul(a, b);
    const V zero = hn::Zero(Floats());
    const V size = hn::Abs(product);
    // The product is too small to be exact, or so large that TwoSum could overflow.
    const auto small = hn::And(hn::Lt(size, hn::Set(Floats(), 0x1p-100f)),
                               hn::And(hn::Ne(a, zero), hn::Ne(b, zero)));
    const auto large = hn::Ge(hn::Max(size, hn::Abs(c)), hn::Set(Floats(), 0x1p126f));
    if (HWY_UNLIKELY(!hn::AllFalse(Floats(), hn::Or(small, large)))) return by_scalar(a, b, c);
    return round(add_to_odd(product, c));
  }

  static HWY_INLINE V round(V x) {
    const W magnitude = hn::And(bits(x), word(~kSign)), sign = hn::And(bits(x), word(kSign));
    const W rounded =
        hn::IfThenElse(hn::Gt(magnitude, word(kInfinite)), word(kNan), nearest<16>(magnitude));
    return value(hn::Or(rounded, sign));
  }

  static HWY_NOINLINE V by_scalar(V a, V b, V c) {
    HWY_ALIGN std::uint32_t x[kMostLanes], y[kMostLanes], z[kMostLanes];
    hn::Store(bits(a), Words(), x);
    hn::Store(bits(b), Words(), y);
    hn::Store(bits(c), Words(), z);
    for (std::size_t i = 0; i < hn::Lanes(Words()); ++i) {
      const Rounded r = fused_multiply_add(kBfloat16, x[i] >> 16, y[i] >> 16, z[i] >> 16);
      z[i] = static_cast<std::uint32_t>(r.bits) << 16;
    }
    return value(hn::Load(Words(), z));
  }
};

/// Computes kRows rows of C by kVectors vectors of columns.
template <class Narrow, int kRows, int kVectors>
HWY_INLINE void tile(std::int64_t depth, StridedAt a, MatrixAt<const float> b, MatrixAt<float> c) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sum[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::LoadU(d, c.data + i * c.stride + j * lanes);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    V row[kVectors];
    for (int j = 0; j < kVectors; ++j) row[j] = hn::LoadU(d, b.data + k * b.stride + j * lanes);
    for (int i = 0; i < kRows; ++i) {
      const V factor = hn::Set(d, a.data[i * a.row + k * a.column]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = Narrow::fused(factor, row[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) hn::StoreU(sum[i][j], d, c.data + i * c.stride + j * lanes);
  }
}

/// Computes all rows of C for kVectors vectors of columns.
template <class Narrow, int kVectors>
HWY_NOINLINE void panel(const ProductShape& s, StridedAt a, MatrixAt<const float> b,
                        MatrixAt<float> c) {
  constexpr int kRows = 4;
  std::int64_t i = 0;
  for (; i + kRows <= s.rows; i += kRows) {
    tile<Narrow, kRows, kVectors>(s.depth, {a.data + i * a.row, a.row, a.column}, b,
                                  {c.data + i * c.stride, c.stride});
  }
  for (; i < s.rows; ++i) {
    tile<Narrow, 1, kVectors>(s.depth, {a.data + i * a.row, a.row, a.column}, b,
                              {c.data + i * c.stride, c.stride});
  }
}

void copy(const ProductShape& s, MatrixAt<const float> from, MatrixAt<float> to) {
  for (std::int64_t i = 0; i < s.rows; ++i) {
    std::memcpy(to.data + i * to.stride, from.data + i * from.stride,
                static_cast<std::size_t>(s.columns) * sizeof(float));
  }
}

/// Computes the last columns, fewer than a vector's lanes, padded with zeros.
template <class Narrow>
void rest(const ProductShape& s, StridedAt a, MatrixAt<const float> b, MatrixAt<float> c) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  std::vector<float> wide_b(static_cast<std::size_t>(s.depth * lanes));
  std::vector<float> wide_c(static_cast<std::size_t>(s.rows * lanes));
  copy({s.depth, s.columns, 0}, b, {wide_b.data(), lanes});
  copy(s, {c.data, c.stride}, {wide_c.data(), lanes});
  panel<Narrow, 1>(s, a, {wide_b.data(), lanes}, {wide_c.data(), lanes});
  copy(s, {wide_c.data(), lanes}, c);
}

template <class Narrow>
void accumulate(const ProductShape& s, StridedAt a, MatrixAt<const float> b, MatrixAt<float> c) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(Floats()));
  std::int64_t j = 0;
  for (; j + 2 * lanes <= s.columns; j += 2 * lanes) {
    panel<Narrow, 2>(s, a, {b.data + j, b.stride}, {c.data + j, c.stride});
  }
  if (j + lanes <= s.columns) {
    panel<Narrow, 1>(s, a, {b.data + j, b.stride}, {c.data + j, c.stride});
    j += lanes;
  }
  if (j < s.columns) {
    rest<Narrow>({s.rows, s.columns - j, s.depth}, a, {b.data + j, b.stride},
                 {c.data + j, c.stride});
  }
}

void by_dtype(Dtype dtype, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
              MatrixAt<float> c) {
  if (dtype == Dtype::f16) return accumulate<Binary16>(shape, a, b, c);
  return accumulate<Bfloat16>(shape, a, b, c);
}

}  // namespace
}  // namespace halfscope::sim::backend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope::sim::backend::cpu {

HWY_EXPORT(by_dtype);

void accumulate_narrow(Dtype dtype, const ProductShape& shape, StridedAt a, MatrixAt<const float> b,
                       MatrixAt<float> c) {
  HWY_DYNAMIC_DISPATCH(by_dtype)(dtype, shape, a, b, c);
}

}  // namespace halfscope::sim::backend::cpu
#endif
