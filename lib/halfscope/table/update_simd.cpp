// SPDX-License-Identifier: Apache-2.0
// The pass over pairs of binary32, with run-time dispatch to the widest vectors. Derivations:
// docs/numerics.md, section 15.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/table/update_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "halfscope/table/update_block.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Words = hn::Repartition<std::uint32_t, Floats>;
using Float = hn::Vec<Floats>;
using Word = hn::Vec<Words>;
using Mask = hn::Mask<Floats>;

HWY_INLINE Float load(const std::uint8_t* data) {  // at any alignment
#if HWY_TARGET == HWY_SCALAR
  float x;
  std::memcpy(&x, data, sizeof x);
  return hn::Set(Floats(), x);
#else
  return hn::BitCast(Floats(), hn::LoadU(hn::Repartition<std::uint8_t, Floats>(), data));
#endif
}

HWY_INLINE Word word(std::uint32_t x) { return hn::Set(Words(), x); }
HWY_INLINE Float number(float x) { return hn::Set(Floats(), x); }
HWY_INLINE Word bits(Float x) { return hn::BitCast(Words(), x); }
HWY_INLINE Word field(Float x) { return hn::And(hn::ShiftRight<23>(bits(x)), word(0xFF)); }
HWY_INLINE Word fraction(Float x) { return hn::And(bits(x), word(0x007FFFFF)); }
template <class M>
HWY_INLINE Mask of_words(M mask) {
  return hn::RebindMask(Floats(), mask);
}
/// 1 in the lanes of a mask.
HWY_INLINE Word one_in(Mask mask) {
  return hn::IfThenElseZero(hn::RebindMask(Words(), mask), word(1));
}

/// Rounds to p bits, ties to even, |x| < 2^100: (x + M) - M, where M's last place is the one to
/// keep, 2^(e - p + 1), and M = 1.5 * 2^(e - p + 24) stays in its binade whatever the sign of x.
template <int kPrecision, int kMinExponent>
HWY_INLINE Float rounded(Float x) {
  const Word binade = hn::And(bits(x), word(0x7F800000));
  const Word least = word(static_cast<std::uint32_t>(kMinExponent + 127) << 23);
  const Word place = hn::Add(hn::Max(binade, least),
                             word(static_cast<std::uint32_t>(24 - kPrecision) << 23 | 0x00400000));
  const Float magic = hn::BitCast(Floats(), place);
  return hn::Sub(hn::Add(x, magic), magic);
}

/// What the vectors of a block find, beside the bins.
struct Sums {
  std::size_t live = 0, underflow = 0, lost = 0, exact = 0, fused_lost = 0, fused_exact = 0,
              rule = 0;
  Word low_row, high_row;
};

struct Bins {
  Word cell, error;
  Mask applied;
};

/// floor(log2(|h - w16 - u| / |u|)) + kErrorBias, where w16 + u = s + low exactly. h - s is exact
/// (both are next to each other or few bits long), and what is lost in subtracting `low` decides
/// only where the significands are the same.
HWY_INLINE Word error_bin(Float h, Float s, Float low, Float u) {
  const Float difference = hn::Sub(h, s);
  const Float error = hn::Sub(difference, low);
  const Float rest = hn::Sub(hn::Sub(difference, error), low);
  const Word fe = fraction(error), fu = fraction(u);
  const auto opposite =
      hn::Ne(hn::And(hn::Xor(bits(rest), bits(error)), word(0x80000000)), hn::Zero(Words()));
  const auto rest_is_there = hn::RebindMask(Words(), hn::Ne(rest, hn::Zero(Floats())));
  const auto below =
      hn::Or(hn::Lt(fe, fu), hn::And(hn::Eq(fe, fu), hn::And(opposite, rest_is_there)));
  const Word bin = hn::Sub(hn::Add(field(error), word(kErrorBias)), field(u));
  return hn::Sub(bin, hn::IfThenElseZero(below, word(1)));
}

/// One vector of pairs. Returns the lanes left over.
template <int kPrecision, int kMinExponent, bool kBins>
HWY_INLINE Mask take_pairs(Float w, Float update, Float factor, Sums& sums, Bins& bins) {
  const Floats d;
  const Float zero = hn::Zero(d);
  const Float u = hn::Mul(update, factor);
  const Float w16 = rounded<kPrecision, kMinExponent>(w);
  const Float u16 = rounded<kPrecision, kMinExponent>(u);
  const Float weight = hn::Abs(w16), size = hn::Abs(u);
  // NaN compares false.
  const Mask zero_update = hn::Eq(update, zero), zero_weight = hn::Eq(w16, zero);
  const Float end = number(std::ldexp(1.0f, kEndBinade));
  const Mask common_update =
      hn::And(hn::Ge(size, number(std::ldexp(1.0f, kFirstUpdate))), hn::Le(size, end));
  Mask taken = hn::And(hn::Le(hn::Abs(w), end), hn::Or(zero_update, common_update));
  if constexpr (kMinExponent < kFirstWeight) {
    const Float least = number(std::ldexp(1.0f, kFirstWeight));
    taken = hn::And(taken, hn::Or(hn::Eq(w, zero), hn::Ge(hn::Abs(w), least)));
  }
  const Mask live = hn::AndNot(zero_update, taken);

  const Float h = rounded<kPrecision, kMinExponent>(hn::Add(w16, u16));
  const Float s = hn::Add(w16, u);
  const Float fused = rounded<kPrecision, kMinExponent>(s);
  const Float b = hn::Sub(s, w16);  // Knuth's TwoSum: w16 + u = s + low
  const Float low = hn::Add(hn::Sub(w16, hn::Sub(s, b)), hn::Sub(u, b));
  const Mask sum_is_exact = hn::And(live, hn::Eq(low, zero));
  const Mask lost = hn::And(live, hn::Eq(h, w16));
  const Mask exact = hn::And(sum_is_exact, hn::Eq(h, s));
  sums.live += hn::CountTrue(d, live);
  sums.lost += hn::CountTrue(d, lost);
  sums.underflow += hn::CountTrue(d, hn::And(live, hn::Eq(u16, zero)));
  sums.exact += hn::CountTrue(d, exact);
  sums.fused_lost += hn::CountTrue(d, hn::And(live, hn::Eq(fused, w16)));
  sums.fused_exact += hn::CountTrue(d, hn::And(sum_is_exact, hn::Eq(fused, s)));
  const Float of_weight = hn::Mul(weight, number(std::ldexp(1.0f, -kPrecision)));
  sums.rule += hn::CountTrue(d, hn::And(live, hn::Gt(of_weight, size)));
  if constexpr (kBins) {
    const Words words;
    const auto live_word = hn::RebindMask(words, live);
    const Word row = hn::IfThenElseZero(
        hn::RebindMask(words, hn::AndNot(zero_weight, live)),
        hn::Sub(field(w16), word(static_cast<std::uint32_t>(127 - kWeightBias))));
    const Word column = hn::Sub(field(u), word(static_cast<std::uint32_t>(127 - kUpdateBias)));
    const Mask less = of_words(hn::Lt(fraction(u), fraction(w16)));
    const Word flags = hn::Add(hn::ShiftLeft<1>(one_in(less)), one_in(lost));
    const Word in_row = hn::Add(hn::ShiftLeft<2>(column), flags);
    bins.cell = hn::Add(hn::IfThenElseZero(live_word, in_row),
                        hn::Add(hn::ShiftLeft<9>(row), hn::ShiftLeft<4>(row)));
    sums.low_row = hn::Min(sums.low_row, row);
    sums.high_row = hn::Max(sums.high_row, row);
    bins.applied = hn::AndNot(hn::Or(lost, exact), live);
    bins.error = error_bin(h, s, low, u);
  }
  return hn::Not(taken);
}

/// Stores the positions of lanes.
HWY_INLINE std::size_t store_lanes(Mask lanes, std::size_t first, std::uint32_t* to) {
  const Words d;
  const auto mask = hn::RebindMask(d, lanes);
  hn::StoreU(hn::Compress(hn::Iota(d, static_cast<std::uint32_t>(first)), mask), d, to);
  return hn::CountTrue(d, mask);
}

template <int kPrecision, int kMinExponent, bool kBins>
void count_block(const std::uint8_t* weights, const std::uint8_t* updates, float factor,
                 std::size_t n, PairScratch& scratch) {
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  Sums sums;
  sums.low_row = word(kUpdateRows);
  sums.high_row = hn::Zero(d);
  alignas(64) std::uint32_t cell[64];
  alignas(64) std::uint32_t error[kPairBlock + 64];
  std::size_t rare = 0, applied = 0;
  for (std::size_t i = 0; i < n; i += lanes) {
    Bins bins;
    const Mask left = take_pairs<kPrecision, kMinExponent, kBins>(
        load(weights + 4 * i), load(updates + 4 * i), number(factor), sums, bins);
    if (HWY_UNLIKELY(!hn::AllFalse(Floats(), left))) {
      rare += store_lanes(left, i, scratch.rare + rare);
    }
    if constexpr (kBins) {
      hn::Store(bins.cell, d, cell);
      hn::StoreU(hn::Compress(bins.error, hn::RebindMask(d, bins.applied)), d, error + applied);
      applied += hn::CountTrue(Floats(), bins.applied);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        ++scratch.cells[lane % kCellTables][cell[lane]];
      }
    }
  }
  for (std::size_t i = 0; i < applied; ++i) ++scratch.errors[i % kErrorTables][error[i]];
  scratch.rare_count = rare;
  PairSums& total = scratch.sums;
  total.live += sums.live;
  total.underflow += sums.underflow;
  total.lost += sums.lost;
  total.exact += sums.exact;
  total.fused_lost += sums.fused_lost;
  total.fused_exact += sums.fused_exact;
  total.rule += sums.rule;
  if constexpr (kBins) {
    scratch.first_row = std::min(scratch.first_row, hn::GetLane(hn::MinOfLanes(d, sums.low_row)));
    scratch.end_row = std::max(scratch.end_row, hn::GetLane(hn::MaxOfLanes(d, sums.high_row)) + 1);
  }
}

void count_binary16_pairs(const std::uint8_t* weights, const std::uint8_t* updates, float factor,
                          std::size_t n, bool bins, PairScratch& scratch) {
  (bins ? count_block<11, -14, true> : count_block<11, -14, false>)(weights, updates, factor, n,
                                                                    scratch);
}

void count_bfloat16_pairs(const std::uint8_t* weights, const std::uint8_t* updates, float factor,
                          std::size_t n, bool bins, PairScratch& scratch) {
  (bins ? count_block<8, -126, true> : count_block<8, -126, false>)(weights, updates, factor, n,
                                                                    scratch);
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(count_binary16_pairs);
HWY_EXPORT(count_bfloat16_pairs);

void count_pair_block(Format f, const std::byte* weights, const std::byte* updates, float factor,
                      std::size_t n, bool distributions, PairScratch& scratch) {
  const auto* w = reinterpret_cast<const std::uint8_t*>(weights);
  const auto* u = reinterpret_cast<const std::uint8_t*>(updates);
  if (f == kBfloat16) {
    HWY_DYNAMIC_DISPATCH(count_bfloat16_pairs)(w, u, factor, n, distributions, scratch);
  } else {
    HWY_DYNAMIC_DISPATCH(count_binary16_pairs)(w, u, factor, n, distributions, scratch);
  }
}

}  // namespace halfscope
#endif
