// SPDX-License-Identifier: Apache-2.0
// The pass over a block with AVX-512 and GFNI, without one increment per element.
//
// 64 elements become two vectors of bytes: sign and upper exponent bits; lowest exponent bit and 7
// bits of fraction. Tables in registers map them to flags; a bit-matrix transposition turns the
// flags of 64 elements into one 64-bit mask per flag. For a vector of 8 such masks, one for each of
// 8 binades, one population count each returns the numbers of all elements, of negative ones, and
// of those at or above each threshold. Definition of the counts: docs/numerics/counting.md.
#include "halfscope/table/count/count_blocks.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#include <hwy/targets.h>

#include <array>
#include <cstring>

#include "halfscope/device/vector_target.hpp"

#ifdef __clang__
#pragma clang attribute push(                                                          \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2," \
                          "avx512vpopcntdq,gfni,popcnt"))),                            \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2")
#pragma GCC target("avx512vpopcntdq,gfni,popcnt")
#endif

#include "halfscope/table/count/count_sources-inl.hpp"

namespace halfscope {
namespace {

/// Stores the positions of a mask's bits, plus base; returns their number.
HALFSCOPE_INLINE std::size_t store_positions(__mmask64 mask, V base, std::uint16_t* to) {
  const V packed = _mm512_maskz_compress_epi8(mask, vector_of(kEach));
  const auto count = static_cast<std::size_t>(__builtin_popcountll(mask));
  const __m256i first = _mm256_cvtepu8_epi16(_mm512_castsi512_si128(packed));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm256_add_epi16(_mm512_castsi512_si256(base), first));
  if (count > 16) [[unlikely]] {
    const V low = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(packed));
    const V high = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(packed, 1));
    _mm512_storeu_si512(to, _mm512_add_epi16(base, low));
    _mm512_storeu_si512(to + 32, _mm512_add_epi16(base, high));
  }
  return count;
}

/// Prefetches the next block: half while masks are computed, half while they are counted, since
/// memory would otherwise be idle.
HALFSCOPE_INLINE void fetch_ahead(const std::byte* data, std::size_t bytes) {
  for (std::size_t line = 0; line < bytes; line += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(data + line), _MM_HINT_T0);
  }
}

template <Dtype kDtype, bool kFractions>
void find(const std::byte* data, std::size_t n, const FineBins& bins, const HotBinades& hot,
          Scratch& scratch) {
  using From = Source<kDtype>;
  const Table128 pair_table(hot.entry), bin_table(bins.entry);
  const V top = every(0x80);
  typename From::See seen;
  V base = _mm512_setzero_si512();
  std::uint16_t* to = scratch.positions.data();
  MaskRow* row = scratch.masks.data();
  for (std::size_t i = 0; i < n; i += kStep, ++row) {
    const Halves halves = From::template take<kFractions>(data + i * From::kBytes, seen);
    fetch_ahead(data + (n + i / 2) * From::kBytes, kStep * From::kBytes / 2);
    const V upper = _mm512_permutex2var_epi8(halves.low, vector_of(kOdd), halves.high);
    const V lower = _mm512_permutex2var_epi8(halves.low, vector_of(kEven), halves.high);
    const V pair = pair_table[upper];
    const V bin = bin_table[lower];
    // Gather if (cold, or segment not determined by the bin) and not zero: each byte's top bit.
    const __mmask64 gather = _mm512_movepi8_mask(
        _mm512_ternarylogic_epi32(pair, bin, _mm512_add_epi8(pair, pair), 0x54));
    const V counted = _mm512_mask_mov_epi8(pair, gather, _mm512_setzero_si512());
    _mm512_store_si512(&row->pair_bit_0, bit_planes(choose(top, counted, upper)));
    _mm512_store_si512(&row->reached, bit_planes(choose(top, bin, lower)));
    to += store_positions(gather, base, to);
    base = _mm512_add_epi16(base, _mm512_set1_epi16(kStep));
  }
  scratch.gathered_count = static_cast<std::size_t>(to - scratch.positions.data());
  scratch.seen = seen.total();
}

/// Copies the elements at scratch.positions to scratch.gathered, as binary32.
template <Dtype kDtype>
void fetch(const std::byte* data, Scratch& scratch) {
  const std::size_t n = scratch.gathered_count;
  if constexpr (kDtype == Dtype::f32) {
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(&scratch.gathered[i], data + std::size_t{4} * scratch.positions[i], 4);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {  // in place: positions are not needed any more
      std::memcpy(&scratch.positions[i], data + std::size_t{2} * scratch.positions[i], 2);
    }
    for (std::size_t i = 0; i < n; i += 16) {
      const auto* const from = reinterpret_cast<const __m256i*>(scratch.positions.data() + i);
      _mm512_storeu_si512(scratch.gathered.data() + i,
                          Source<kDtype>::widen(_mm256_loadu_si256(from)));
    }
  }
}

HALFSCOPE_INLINE V broadcast(std::uint64_t x) {
  return _mm512_set1_epi64(static_cast<long long>(x));
}

/// Lane l has the mask of the elements whose three bits equal l.
HALFSCOPE_INLINE V lanes_of(const MaskRow& row) {
  const V bit_0 = _mm512_setr_epi64(0, -1, 0, -1, 0, -1, 0, -1);
  const V bit_1 = _mm512_setr_epi64(0, 0, -1, -1, 0, 0, -1, -1);
  const V bit_2 = _mm512_setr_epi64(0, 0, 0, 0, -1, -1, -1, -1);
  V lanes = where_equal(_mm512_set1_epi64(-1), broadcast(row.field_bit_0), bit_0);
  lanes = where_equal(lanes, broadcast(row.pair_bit_0), bit_1);
  return where_equal(lanes, broadcast(row.pair_bit_1), bit_2);
}

HALFSCOPE_INLINE void count_zeros(const MaskRow& row, Scratch& scratch) {
  scratch.zeros += static_cast<std::uint64_t>(__builtin_popcountll(row.zero));
  scratch.negative_zeros +=
      static_cast<std::uint64_t>(__builtin_popcountll(row.zero & row.negative));
}

/// Counts kGroups groups from the group `first` on; with group 0 also the zeros.
template <std::size_t kGroups, std::size_t kThresholds>
void count(std::size_t first, std::size_t rows, const std::byte* next, std::size_t stride,
           Scratch& scratch) {
  V sum[kGroups][2 + kThresholds];
  const auto each = [&](auto what) {
    HALFSCOPE_UNROLL
    for (std::size_t g = 0; g < kGroups; ++g) {
      HALFSCOPE_UNROLL
      for (std::size_t k = 0; k < 2 + kThresholds; ++k) {
        what(sum[g][k], scratch.hot[first + g][k].data());
      }
    }
  };
  each([](V& counter, const void* from) { counter = _mm512_load_si512(from); });
  for (std::size_t r = 0; r < rows; ++r) {
    const MaskRow& row = scratch.masks[r];
    if (first == 0) {
      fetch_ahead(next + r * stride, stride);
      count_zeros(row, scratch);
    }
    const V lanes = lanes_of(row);
    HALFSCOPE_UNROLL
    for (std::size_t g = 0; g < kGroups; ++g) {
      const V group = _mm512_and_si512(lanes, broadcast(row.group[first + g]));
      const auto add = [&](std::size_t k, V which) {
        sum[g][k] = _mm512_add_epi64(sum[g][k], _mm512_popcnt_epi64(which));
      };
      add(0, group);
      add(1, _mm512_and_si512(group, broadcast(row.negative)));
      HALFSCOPE_UNROLL
      for (std::size_t k = 0; k < kThresholds; ++k) {
        add(2 + k, _mm512_and_si512(group, broadcast(row.reached[k])));
      }
    }
  }
  each([](V counter, void* to) { _mm512_store_si512(to, counter); });
}

template <Dtype kDtype>
void pairs_of(const TensorView& block, std::array<std::uint32_t, kPairs>& counts) {
  alignas(64) std::array<std::uint8_t, 64> upper;
  typename Source<kDtype>::See unused;
  for (std::size_t i = 0; i < block.count; i += kStep) {
    const Halves halves =
        Source<kDtype>::template take<false>(block.data + i * Source<kDtype>::kBytes, unused);
    _mm512_store_si512(upper.data(),
                       _mm512_permutex2var_epi8(halves.low, vector_of(kOdd), halves.high));
    for (const std::uint8_t byte : upper) ++counts[byte & 0x7F];
  }
}

template <Dtype kDtype>
void find_and_fetch(const TensorView& block, const FineBins& bins, const HotBinades& hot,
                    bool with_fractions, Scratch& scratch) {
  const auto run = with_fractions ? find<kDtype, true> : find<kDtype, false>;
  run(block.data, block.count, bins, hot, scratch);
  fetch<kDtype>(block.data, scratch);
}

template <Dtype kDtype>
void widen_all(const TensorView& block, std::uint32_t* wide) {
  for (std::size_t i = 0; i < block.count; i += 16) {
    const auto* const from = reinterpret_cast<const __m256i*>(block.data + 2 * i);
    _mm512_storeu_si512(wide + i, Source<kDtype>::widen(_mm256_loadu_si256(from)));
  }
}

}  // namespace

void find_masks(const TensorView& block, const FineBins& bins, const HotBinades& hot,
                bool with_fractions, Scratch& scratch) {
  switch (block.dtype) {
    case Dtype::f16: return find_and_fetch<Dtype::f16>(block, bins, hot, with_fractions, scratch);
    case Dtype::bf16: return find_and_fetch<Dtype::bf16>(block, bins, hot, with_fractions, scratch);
    default: return find_and_fetch<Dtype::f32>(block, bins, hot, with_fractions, scratch);
  }
}

void count_masks(std::size_t n, std::size_t groups, std::size_t thresholds, const std::byte* next,
                 std::size_t next_bytes, Scratch& scratch) {
  using Count = decltype(&count<1, 3>);
  static constexpr Count kCount[2][kMaxGroups] = {
      {count<1, 3>, count<2, 3>, count<3, 3>, count<4, 3>}, {count<1, 4>, count<2, 4>}};
  // More groups with four thresholds need more counters than there are registers: 10 % slower.
  const std::size_t kind = thresholds > 3 ? 1 : 0, at_once = kind == 0 ? kMaxGroups : 2;
  const std::size_t rows = n / kStep, half = next_bytes / 2;
  for (std::size_t first = 0; first < groups; first += at_once) {
    const std::size_t left = groups - first;
    kCount[kind][(left < at_once ? left : at_once) - 1](first, rows, next + half, half / rows,
                                                        scratch);
  }
}

void count_pairs(const TensorView& block, std::array<std::uint32_t, kPairs>& counts) {
  switch (block.dtype) {
    case Dtype::f16: return pairs_of<Dtype::f16>(block, counts);
    case Dtype::bf16: return pairs_of<Dtype::bf16>(block, counts);
    default: return pairs_of<Dtype::f32>(block, counts);
  }
}

void widen(const TensorView& block, std::uint32_t* wide) {
  if (block.dtype == Dtype::f16) return widen_all<Dtype::f16>(block, wide);
  widen_all<Dtype::bf16>(block, wide);
}

}  // namespace halfscope

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace halfscope {

bool has_hot_kernel() {
  return uses_vector_target(HWY_AVX3_DL) && __builtin_cpu_supports("gfni") != 0;
}

}  // namespace halfscope

#else  // never called

namespace halfscope {

bool has_hot_kernel() { return false; }
void find_masks(const TensorView&, const FineBins&, const HotBinades&, bool, Scratch&) {}
void count_masks(std::size_t, std::size_t, std::size_t, const std::byte*, std::size_t, Scratch&) {}
void count_pairs(const TensorView&, std::array<std::uint32_t, kPairs>&) {}
void widen(const TensorView&, std::uint32_t*) {}

}  // namespace halfscope

#endif
