// SPDX-License-Identifier: Apache-2.0
// The pass over pairs of binary32, with run-time dispatch to the widest vectors. README.md in this
// folder has the derivations.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/table/update/update_simd.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "halfscope/table/update/update_block.hpp"

#ifndef HALFSCOPE_UPDATE_SIMD_ONCE
#define HALFSCOPE_UPDATE_SIMD_ONCE
namespace halfscope {

/// Byte k of entry m: the place of the k-th bit that is set in m.
struct SetBits {
  std::uint8_t place[256][8] = {};
  constexpr SetBits() {
    for (unsigned mask = 0; mask < 256; ++mask) {
      std::size_t n = 0;
      for (std::uint8_t bit = 0; bit < 8; ++bit) {
        if ((mask >> bit & 1) != 0) place[mask][n++] = bit;
      }
    }
  }
};
inline constexpr SetBits kSetBits;

}  // namespace halfscope
#endif

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

/// Prefetches the bytes of two vectors.
HWY_INLINE void fetch(const std::uint8_t* data) {
  constexpr std::size_t kLine = 64;
  for (std::size_t at = 0; at < 8 * hn::Lanes(Floats()); at += kLine) hwy::Prefetch(data + at);
}

HWY_INLINE Word word(std::uint32_t x) { return hn::Set(Words(), x); }
HWY_INLINE Float number(float x) { return hn::Set(Floats(), x); }
HWY_INLINE Word bits(Float x) { return hn::BitCast(Words(), x); }
HWY_INLINE Word fraction(Float x) { return hn::And(bits(x), word(0x007FFFFF)); }
/// The exponent fields of numbers of any sign, times 2^kShift.
template <int kShift>
HWY_INLINE Word field(Float x) {
  return hn::And(hn::ShiftRight<23 - kShift>(bits(x)), word(0xFFu << kShift));
}
HWY_INLINE auto as_words(Mask mask) { return hn::RebindMask(Words(), mask); }
HWY_INLINE std::size_t count(Mask mask) { return hn::CountTrue(Floats(), mask); }

/// Moves the lanes of a mask to the front. For 4 and 8 lanes, g++ 12 copies the 1 KiB table of
/// Highway's Compress at each call, which took half of the pass's time.
HWY_INLINE Word compressed(Word x, Mask mask) {
#if HWY_TARGET == HWY_SCALAR || HWY_MAX_BYTES > 32
  return hn::Compress(x, as_words(mask));
#else
  std::uint8_t set[8];
  hn::StoreMaskBits(Floats(), mask, set);
  const hn::Rebind<std::uint8_t, Words> octets;
  const Word places = hn::PromoteTo(Words(), hn::LoadU(octets, kSetBits.place[set[0]]));
  return hn::TableLookupLanes(x, hn::IndicesFromVec(Words(), places));
#endif
}
HWY_INLINE bool any(Mask mask) { return !hn::AllFalse(Floats(), mask); }

/// Rounds to p bits, ties to even, |x| < 2^100: (x + M) - M. M's last place is the last one to
/// keep, 2^(e - p + 1), and M = 1.5 * 2^(e - p + 24) stays in its binade for both signs of x.
template <int kPrecision>
HWY_INLINE Float rounded_at(Float x, Word binade) {
  constexpr auto kUp = static_cast<std::uint32_t>(24 - kPrecision) << 23 | 0x00400000;
  const Float magic = hn::BitCast(Floats(), hn::Add(binade, word(kUp)));
  return hn::Sub(hn::Add(x, magic), magic);
}
HWY_INLINE Word binade_of(Float x) { return hn::And(bits(x), word(0x7F800000)); }
template <int kPrecision, int kMinExponent>
HWY_INLINE Float rounded(Float x) {
  const Word least = word(static_cast<std::uint32_t>(kMinExponent + 127) << 23);
  return rounded_at<kPrecision>(x, hn::Max(binade_of(x), least));
}
/// Rounds a multiple of the format's smallest step; below 2^emin it needs no rounding.
template <int kPrecision>
HWY_INLINE Float rounded_multiple(Float x) {
  return rounded_at<kPrecision>(x, binade_of(x));
}

/// |x| in [2^first, 2^kEndBinade]. Unsigned subtraction wraps, so one comparison tests both ends
/// and NaN.
HWY_INLINE auto is_between(Float x, int first) {
  const auto low = static_cast<std::uint32_t>(first + 127) << 23;
  const auto end = static_cast<std::uint32_t>(kEndBinade + 127) << 23;
  return hn::Lt(hn::Sub(bits(hn::Abs(x)), word(low)), word(end - low + 1));
}

/// Returns true in lanes that the vector code supports.
template <int kMinExponent>
HWY_INLINE Mask is_common(Float w, Float update, Float u) {
  const Float zero = hn::Zero(Floats());
  const auto common_update = hn::Or(is_between(u, kFirstUpdate), as_words(hn::Eq(update, zero)));
  auto common_weight = is_between(w, -127);
  if constexpr (kMinExponent < kFirstWeight) {
    common_weight = hn::Or(is_between(w, kFirstWeight), as_words(hn::Eq(w, zero)));
  }
  return hn::RebindMask(Floats(), hn::And(common_weight, common_update));
}

struct Sums {
  std::size_t zero = 0, underflow = 0, lost = 0, exact = 0, fused_lost = 0, fused_exact = 0,
              rule = 0;
};

struct Bins {
  Word cell, error;
  Mask applied;
  HWY_INLINE Bins() {}  // g++'s own would lack the target's instructions: an error on aarch64
};

/// floor(log2(|h - w16 - u| / |u|)) + kErrorBias in the lanes `applied`, where w16 + u = s + low
/// exactly. h - s is exact (both are close together or few bits long). The rounding error of
/// subtracting `low` matters only if the significands are equal.
HWY_INLINE Word error_bin(Float h, Float s, Float low, Float u, Mask applied) {
  const Float difference = hn::Sub(h, s);
  const Float error = hn::Sub(difference, low);
  const Word fe = fraction(error), fu = fraction(u);
  const Word bin = hn::Add(hn::Sub(field<0>(error), field<0>(u)), word(kErrorBias));
  const Word below = hn::ShiftRight<31>(hn::Sub(fe, fu));
  const Mask same = hn::And(applied, hn::RebindMask(Floats(), hn::Eq(fe, fu)));
  if (HWY_LIKELY(!any(same))) return hn::Sub(bin, below);
  const Float rest = hn::Sub(hn::Sub(difference, error), low);
  const Mask there = hn::And(same, hn::Ne(rest, hn::Zero(Floats())));
  const Word signs = hn::ShiftRight<31>(hn::Xor(bits(rest), bits(error)));
  return hn::Sub(bin, hn::Add(below, hn::IfThenElseZero(as_words(there), signs)));
}

/// Counts one vector of common pairs and pairs (0, 0). Sums count zero updates as lost and exact.
template <int kPrecision, int kMinExponent, bool kBins>
HWY_INLINE void take_pairs(Float w, Float u, Sums& sums, Bins& bins) {
  const Float zero = hn::Zero(Floats());
  const Float w16 = rounded<kPrecision, kMinExponent>(w);
  const Float u16 = rounded<kPrecision, kMinExponent>(u);
  const Float h = rounded_multiple<kPrecision>(hn::Add(w16, u16));
  const Float s = hn::Add(w16, u);
  const Float fused = rounded<kPrecision, kMinExponent>(s);
  const Float b = hn::Sub(s, w16);  // Knuth's TwoSum: w16 + u = s + low
  const Float low = hn::Add(hn::Sub(w16, hn::Sub(s, b)), hn::Sub(u, b));
  const Mask sum_is_exact = hn::Eq(low, zero);
  const Mask lost = hn::Eq(h, w16);
  const Mask exact = hn::And(sum_is_exact, hn::Eq(h, s));
  const Mask zero_update = hn::Eq(u, zero);
  sums.zero += count(zero_update);
  sums.lost += count(lost);
  sums.underflow += count(hn::Eq(u16, zero));
  sums.exact += count(exact);
  sums.fused_lost += count(hn::Eq(fused, w16));
  sums.fused_exact += count(hn::And(sum_is_exact, hn::Eq(fused, s)));
  const Float of_weight = hn::Mul(hn::Abs(w16), number(std::ldexp(1.0f, -kPrecision)));
  sums.rule += count(hn::AndNot(zero_update, hn::Gt(of_weight, hn::Abs(u))));
  if constexpr (kBins) {
    const Word less = hn::ShiftRight<31>(hn::Sub(fraction(u), fraction(w16)));
    const Word row = hn::Add(field<9>(w16), field<6>(w16));  // times kUpdateRow
    const Word flags = hn::Add(hn::Add(less, less), hn::IfThenElseZero(as_words(lost), word(1)));
    bins.cell = hn::Add(hn::Add(row, field<2>(u)), flags);
    bins.applied = hn::Not(hn::Or(lost, exact));
    bins.error = error_bin(h, s, low, u, bins.applied);
  }
}

/// Stores the positions of unsupported lanes, and replaces their pairs by (0, 0).
HWY_INLINE void leave(Mask common, std::size_t first, Float& w, Float& u, PairScratch& scratch) {
  const Words d;
  const Mask left = hn::Not(common);
  const Word positions = hn::Iota(d, static_cast<std::uint32_t>(first));
  hn::StoreU(compressed(positions, left), d, scratch.rare + scratch.rare_count);
  scratch.rare_count += count(left);
  w = hn::IfThenElseZero(common, w);
  u = hn::IfThenElseZero(common, u);
}

void add(const Sums& sums, std::size_t pairs, PairSums& total) {
  total.live += pairs - sums.zero;
  total.underflow += sums.underflow - sums.zero;
  total.lost += sums.lost - sums.zero;
  total.exact += sums.exact - sums.zero;
  total.fused_lost += sums.fused_lost - sums.zero;
  total.fused_exact += sums.fused_exact - sums.zero;
  total.rule += sums.rule;
}

/// Loads two indices at a time.
HWY_INLINE void count_cells(const std::uint32_t* cell, std::size_t lanes, PairScratch& scratch) {
  for (std::size_t lane = 0; lane + 2 <= lanes; lane += 2) {
    std::uint64_t two;
    std::memcpy(&two, cell + lane, sizeof two);
    ++scratch.cells[0][static_cast<std::uint32_t>(two)];
    ++scratch.cells[1][two >> 32];
  }
  if (lanes % 2 != 0) ++scratch.cells[0][cell[lanes - 1]];
}

/// Uses several tables in turn, so that an addition does not wait for the last one.
HWY_INLINE void count_errors(const std::uint32_t* error, std::size_t n, PairScratch& scratch) {
  std::size_t i = 0;
  for (; i + kErrorTables <= n; i += kErrorTables) {
    for (std::size_t k = 0; k < kErrorTables; ++k) ++scratch.errors[k][error[i + k]];
  }
  for (; i < n; ++i) ++scratch.errors[0][error[i]];
}

// The errors' frequent bins, from 2^-11 to 2^0, are counted without a store: an error adds 1 to the
// five bits of its bin. Other lanes add to the unused four top bits, whose carry is lost.
constexpr std::uint32_t kFirstFrequent = kErrorBias - 11, kFrequent = 12;

#if HWY_TARGET == HWY_SCALAR
struct FrequentErrors {};
HWY_INLINE FrequentErrors no_errors() { return {}; }
HWY_INLINE Mask take_frequent(const Bins& bins, FrequentErrors&) { return bins.applied; }
HWY_INLINE void widen(FrequentErrors&) {}
HWY_INLINE void add(const FrequentErrors&, PairScratch&) {}
#else
using Longs = hn::Repartition<std::uint64_t, Floats>;
using Long = hn::Vec<Longs>;
HWY_INLINE Long every(std::uint64_t x) { return hn::Set(Longs(), x); }

/// A vector adds at most 2 to a count, a block of 4 lanes per vector at most 512.
struct FrequentErrors {
  Long five;       ///< counts of 5 bits
  Long even, odd;  ///< counts of 10 bits, for every other bin
};
HWY_INLINE FrequentErrors no_errors() { return {every(0), every(0), every(0)}; }

/// Returns the lanes whose error is in another bin.
HWY_INLINE Mask take_frequent(const Bins& bins, FrequentErrors& errors) {
  const Word none = word(kFrequent);
  const Word frequent = hn::Min(hn::Sub(bins.error, word(kFirstFrequent)), none);
  const Word bin = hn::IfThenElse(as_words(bins.applied), frequent, none);
  const Long shift = hn::BitCast(Longs(), hn::Add(bin, hn::ShiftLeft<2>(bin)));
  const Long low = hn::And(shift, every(0xFFFFFFFF)), high = hn::ShiftRight<32>(shift);
  errors.five = hn::Add(errors.five, hn::Shl(every(1), low));
  errors.five = hn::Add(errors.five, hn::Shl(every(1), high));
  return hn::And(bins.applied, hn::RebindMask(Floats(), hn::Eq(bin, none)));
}

/// Must be called after at most 15 vectors.
HWY_INLINE void widen(FrequentErrors& errors) {
  const Long other_counts = every(0x007C1F07C1F07C1Fu);
  errors.even = hn::Add(errors.even, hn::And(errors.five, other_counts));
  errors.odd = hn::Add(errors.odd, hn::And(hn::ShiftRight<5>(errors.five), other_counts));
  errors.five = every(0);
}

HWY_INLINE std::uint32_t sum_of_first(Long counts) {
  const Long first = hn::And(counts, every(0x3FF));
  return static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(Longs(), first)));
}

HWY_INLINE void add(FrequentErrors errors, PairScratch& scratch) {
  widen(errors);
  for (std::uint32_t k = 0; k < kFrequent; k += 2) {
    scratch.errors[0][kFirstFrequent + k] += sum_of_first(errors.even);
    scratch.errors[0][kFirstFrequent + k + 1] += sum_of_first(errors.odd);
    errors.even = hn::ShiftRight<10>(errors.even);
    errors.odd = hn::ShiftRight<10>(errors.odd);
  }
}
#endif

/// Bins that are not counted yet.
struct Waiting {
  alignas(64) std::uint32_t cell[64] = {};  ///< bins of a vector; at first, ignored ones
  std::uint32_t error[kPairBlock + 64];
  std::size_t errors = 0;
};

/// Cells are counted one vector later, since loads would otherwise wait for the preceding store.
HWY_INLINE void take_bins(const Bins& bins, FrequentErrors& frequent, Waiting& waiting,
                          PairScratch& scratch) {
  const Words d;
  count_cells(waiting.cell, hn::Lanes(d), scratch);
  hn::Store(bins.cell, d, waiting.cell);
  const Mask others = take_frequent(bins, frequent);
  hn::StoreU(compressed(bins.error, others), d, waiting.error + waiting.errors);
  waiting.errors += count(others);
}

template <int kPrecision, int kMinExponent, bool kBins>
void count_block(const std::uint8_t* weights, const std::uint8_t* updates, float factor,
                 std::size_t n, const std::uint8_t* ahead, PairScratch& scratch) {
  const std::size_t lanes = hn::Lanes(Words());
  Sums sums;
  FrequentErrors frequent = no_errors();
  Waiting waiting;
  scratch.rare_count = 0;
  for (std::size_t i = 0; i < n; i += lanes) {
    if (ahead != nullptr) fetch(ahead + 8 * i);
    Float w = load(weights + 4 * i);
    const Float update = load(updates + 4 * i);
    Float u = hn::Mul(update, number(factor));
    const Mask common = is_common<kMinExponent>(w, update, u);
    if (HWY_UNLIKELY(!hn::AllTrue(Floats(), common))) leave(common, i, w, u, scratch);
    Bins bins;
    take_pairs<kPrecision, kMinExponent, kBins>(w, u, sums, bins);
    if constexpr (kBins) {
      take_bins(bins, frequent, waiting, scratch);
      if (i % (8 * lanes) == 7 * lanes) widen(frequent);
    }
  }
  add(sums, n, scratch.sums);
  if constexpr (kBins) {
    count_cells(waiting.cell, lanes, scratch);
    add(frequent, scratch);
    count_errors(waiting.error, waiting.errors, scratch);
    scratch.has_bins = true;
  }
}

void count_binary16_pairs(const std::uint8_t* weights, const std::uint8_t* updates, float factor,
                          std::size_t n, bool bins, const std::uint8_t* ahead,
                          PairScratch& scratch) {
  (bins ? count_block<11, -14, true> : count_block<11, -14, false>)(weights, updates, factor, n,
                                                                    ahead, scratch);
}

void count_bfloat16_pairs(const std::uint8_t* weights, const std::uint8_t* updates, float factor,
                          std::size_t n, bool bins, const std::uint8_t* ahead,
                          PairScratch& scratch) {
  (bins ? count_block<8, -126, true> : count_block<8, -126, false>)(weights, updates, factor, n,
                                                                    ahead, scratch);
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(count_binary16_pairs);
HWY_EXPORT(count_bfloat16_pairs);

void count_pair_block(Format f, const std::byte* weights, const std::byte* updates, float factor,
                      std::size_t n, bool distributions, const std::byte* ahead,
                      PairScratch& scratch) {
  const auto* a = reinterpret_cast<const std::uint8_t*>(ahead);
  const auto* w = reinterpret_cast<const std::uint8_t*>(weights);
  const auto* u = reinterpret_cast<const std::uint8_t*>(updates);
  if (f == kBfloat16) {
    HWY_DYNAMIC_DISPATCH(count_bfloat16_pairs)(w, u, factor, n, distributions, a, scratch);
  } else {
    HWY_DYNAMIC_DISPATCH(count_binary16_pairs)(w, u, factor, n, distributions, a, scratch);
  }
}

}  // namespace halfscope
#endif
