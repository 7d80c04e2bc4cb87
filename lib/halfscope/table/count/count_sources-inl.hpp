// SPDX-License-Identifier: Apache-2.0
// 64 elements of each source type as vectors, and their magnitudes. Included only by count_hot.cpp,
// with its target enabled.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/table/count/count_blocks.hpp"

namespace halfscope {
namespace {

#define HALFSCOPE_INLINE inline __attribute__((always_inline))
#define HALFSCOPE_UNROLL _Pragma("GCC unroll 8")

using V = __m512i;

struct ByteTable {
  alignas(64) std::array<std::uint8_t, 64> byte;
};

/// Entry i is start + step * i.
constexpr ByteTable progression(int start, int step) {
  ByteTable t{};
  for (int i = 0; i < 64; ++i)
    t.byte[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(start + step * i);
  return t;
}

/// Byte q of quadword k comes from byte k of quadword q.
constexpr ByteTable transposition() {
  ByteTable t{};
  for (std::size_t i = 0; i < 64; ++i) t.byte[i] = static_cast<std::uint8_t>(i % 8 * 8 + i / 8);
  return t;
}

constexpr ByteTable kEach = progression(0, 1), kOdd = progression(1, 2), kEven = progression(0, 2);
constexpr ByteTable kTransposed = transposition();

HALFSCOPE_INLINE V load(const void* p) { return _mm512_loadu_si512(p); }
HALFSCOPE_INLINE V vector_of(const ByteTable& t) { return _mm512_load_si512(t.byte.data()); }
HALFSCOPE_INLINE V every(std::uint8_t byte) { return _mm512_set1_epi8(static_cast<char>(byte)); }

HALFSCOPE_INLINE V from_binary16(__m256i x) {  // exact; raises no flag for a signaling NaN
  return _mm512_castps_si512(_mm512_cvt_roundph_ps(x, _MM_FROUND_NO_EXC));
}
HALFSCOPE_INLINE V from_bfloat16(__m256i x) {
  return _mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16);
}

/// Returns the lower (0) or the upper (1) halves of the 32-bit lanes of two vectors.
template <std::size_t kWhich>
HALFSCOPE_INLINE V halves_of(V low, V high) {
  alignas(64) static constexpr auto kIndex = [] {
    std::array<std::uint16_t, 32> index{};
    for (std::size_t i = 0; i < 32; ++i) index[i] = static_cast<std::uint16_t>(2 * i + kWhich);
    return index;
  }();
  return _mm512_permutex2var_epi16(low, _mm512_load_si512(kIndex.data()), high);
}

/// Looks up bytes by their lower 7 bits.
struct Table128 {
  V low, high;
  HALFSCOPE_INLINE explicit Table128(const std::array<std::uint8_t, 128>& t)
      : low(_mm512_load_si512(t.data())), high(_mm512_load_si512(t.data() + 64)) {}
  HALFSCOPE_INLINE V operator[](V index) const {
    return _mm512_permutex2var_epi8(low, index, high);
  }
};

/// Returns eight masks: quadword k has bit k of every byte. Within groups of eight the order is
/// reversed, in all masks alike.
HALFSCOPE_INLINE V bit_planes(V bytes) {
  const V identity = _mm512_set1_epi64(static_cast<long long>(0x8040201008040201u));
  return _mm512_permutexvar_epi8(vector_of(kTransposed),
                                 _mm512_gf2p8affine_epi64_epi8(identity, bytes, 0));
}

/// Returns b where a bit of mask is set, else a.
HALFSCOPE_INLINE V choose(V mask, V a, V b) { return _mm512_ternarylogic_epi32(a, b, mask, 0xD8); }
/// Returns a where b and c are equal, bit by bit.
HALFSCOPE_INLINE V where_equal(V a, V b, V c) { return _mm512_ternarylogic_epi64(a, b, c, 0x90); }

/// Summary of the magnitudes of 32-bit elements.
struct Seen32 {
  V largest, smallest_less_one, fractions;

  HALFSCOPE_INLINE Seen32()  // not defaulted: that would be compiled for any processor
      : largest(_mm512_setzero_si512()),
        smallest_less_one(_mm512_set1_epi32(-1)),
        fractions(_mm512_setzero_si512()) {}
  template <bool kFractions>
  HALFSCOPE_INLINE void see(V bits) {
    const V magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
    largest = _mm512_max_epu32(largest, magnitude);
    smallest_less_one =
        _mm512_min_epu32(smallest_less_one, _mm512_sub_epi32(magnitude, _mm512_set1_epi32(1)));
    if constexpr (kFractions) fractions = _mm512_or_si512(fractions, bits);
  }
  HALFSCOPE_INLINE Seen total() const {
    return {_mm512_reduce_max_epu32(largest), _mm512_reduce_min_epu32(smallest_less_one),
            static_cast<std::uint32_t>(_mm512_reduce_or_epi32(fractions)) & 0x007FFFFFu};
  }
};

/// Summary of the magnitudes of 16-bit elements, doubled to remove the sign.
struct Seen16 {
  V largest, smallest_less_one;

  HALFSCOPE_INLINE Seen16()  // not defaulted: that would be compiled for any processor
      : largest(_mm512_setzero_si512()), smallest_less_one(_mm512_set1_epi32(-1)) {}
  HALFSCOPE_INLINE void see(V bits) {
    const V doubled = _mm512_add_epi16(bits, bits);
    largest = _mm512_max_epu16(largest, doubled);
    smallest_less_one =
        _mm512_min_epu16(smallest_less_one, _mm512_sub_epi16(doubled, _mm512_set1_epi16(1)));
  }
  /// to_binary32 converts the bits of a magnitude.
  template <typename ToBinary32>
  HALFSCOPE_INLINE Seen total(V fractions, ToBinary32 to_binary32) const {
    const V low = _mm512_set1_epi32(0xFFFF);
    const auto largest_of_both = _mm512_reduce_max_epu32(
        _mm512_max_epu32(_mm512_and_si512(largest, low), _mm512_srli_epi32(largest, 16)));
    const auto smallest_of_both = _mm512_reduce_min_epu32(_mm512_min_epu32(
        _mm512_and_si512(smallest_less_one, low), _mm512_srli_epi32(smallest_less_one, 16)));
    Seen seen;
    seen.largest = to_binary32(largest_of_both / 2);
    if (smallest_of_both != 0xFFFFu) {
      seen.smallest_less_one = to_binary32((smallest_of_both + 1) / 2) - 1;
    }
    seen.fractions = static_cast<std::uint32_t>(_mm512_reduce_or_epi32(fractions)) & 0x007FFFFFu;
    return seen;
  }
};

struct SeenBfloat16 {
  Seen16 magnitudes;
  V fractions = _mm512_setzero_si512();

  HALFSCOPE_INLINE SeenBfloat16() {}
  template <bool kFractions>
  HALFSCOPE_INLINE void see(V bits) {
    magnitudes.see(bits);
    if constexpr (kFractions) {
      fractions = _mm512_or_si512(fractions, _mm512_or_si512(bits, _mm512_slli_epi32(bits, 16)));
    }
  }
  HALFSCOPE_INLINE Seen total() const {
    const V upper = _mm512_and_si512(fractions, _mm512_set1_epi32(-0x10000));
    return magnitudes.total(upper, [](std::uint32_t bits) { return bits << 16; });
  }
};

struct SeenBinary16 {
  Seen16 magnitudes;
  V fractions = _mm512_setzero_si512();  ///< fractions of the elements as binary32

  HALFSCOPE_INLINE SeenBinary16() {}
  HALFSCOPE_INLINE Seen total() const {
    return magnitudes.total(fractions, [](std::uint32_t bits) {
      const V wide = from_binary16(_mm256_set1_epi16(static_cast<short>(bits)));
      return static_cast<std::uint32_t>(_mm512_cvtsi512_si32(wide));
    });
  }
};

struct Halves {
  V low, high;  ///< the upper halves of 64 elements as binary32
};

template <Dtype kDtype>
struct Source;

template <>
struct Source<Dtype::f32> {
  using See = Seen32;
  static constexpr std::size_t kBytes = 4;
  template <bool kFractions>
  static HALFSCOPE_INLINE Halves take(const std::byte* p, See& seen) {
    const V a = load(p), b = load(p + 64), c = load(p + 128), d = load(p + 192);
    seen.template see<kFractions>(a);
    seen.template see<kFractions>(b);
    seen.template see<kFractions>(c);
    seen.template see<kFractions>(d);
    return {halves_of<1>(a, b), halves_of<1>(c, d)};
  }
};

template <>
struct Source<Dtype::bf16> {
  using See = SeenBfloat16;
  static constexpr std::size_t kBytes = 2;
  static HALFSCOPE_INLINE V widen(__m256i x) { return from_bfloat16(x); }
  template <bool kFractions>
  static HALFSCOPE_INLINE Halves take(const std::byte* p, See& seen) {
    const Halves halves = {load(p), load(p + 64)};
    seen.template see<kFractions>(halves.low);
    seen.template see<kFractions>(halves.high);
    return halves;
  }
};

template <>
struct Source<Dtype::f16> {
  using See = SeenBinary16;
  static constexpr std::size_t kBytes = 2;
  static HALFSCOPE_INLINE V widen(__m256i x) { return from_binary16(x); }
  template <bool kFractions>
  static HALFSCOPE_INLINE Halves take(const std::byte* p, See& seen) {
    seen.magnitudes.see(load(p));
    seen.magnitudes.see(load(p + 64));
    V v[4];
    HALFSCOPE_UNROLL
    for (std::size_t k = 0; k < 4; ++k) {
      v[k] = widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32 * k)));
      if constexpr (kFractions) seen.fractions = _mm512_or_si512(seen.fractions, v[k]);
    }
    return {rounded_to_odd(v[0], v[1]), rounded_to_odd(v[2], v[3])};
  }

 private:
  /// Returns the upper halves, with the lowest bit set if the lower half is not 0.
  static HALFSCOPE_INLINE V rounded_to_odd(V a, V b) {
    const V rest = _mm512_min_epu16(halves_of<0>(a, b), _mm512_set1_epi16(1));
    return _mm512_or_si512(halves_of<1>(a, b), rest);
  }
};

}  // namespace
}  // namespace halfscope
