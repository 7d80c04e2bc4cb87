// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/optimizer/changed.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "halfscope/array/array.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/optimizer/changed.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Returns the bfloat16 copies of binary32 numbers, as words.
template <class V>
HWY_INLINE V bfloat16_copies(V x) {
  const hn::DFromV<V> d;
  const hn::RebindToFloat<hn::DFromV<V>> floats;
  const V last = hn::And(hn::ShiftRight<16>(x), hn::Set(d, 1u));
  const V copy = hn::ShiftRight<16>(hn::Add(hn::Add(x, hn::Set(d, 0x7FFFu)), last));
  const auto nan = hn::RebindMask(d, hn::IsNaN(hn::BitCast(floats, x)));
  return hn::IfThenElse(nan, hn::Set(d, 0x7FC0u), copy);
}

/// Compares n words, a multiple of 64. `rounds`: the bfloat16 copies of words of binary32.
template <typename Word, bool rounds>
HWY_INLINE void compare(const void* a, const void* b, std::size_t n, std::uint8_t* bits) {
  const hn::ScalableTag<Word> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto mask = [&](std::size_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, static_cast<const Word*>(a) + i);
    const auto y = hn::LoadU(d, static_cast<const Word*>(b) + i);
    if constexpr (rounds) return hn::Ne(bfloat16_copies(x), bfloat16_copies(y));
    return hn::Ne(x, y);
  };
  const std::size_t at_once = std::max<std::size_t>(lanes, 8);
  for (std::size_t i = 0; i < n; i += at_once) {
    hn::StoreMaskBits(d, mask(i), bits + i / 8);
    for (std::size_t lane = lanes; lane < 8; lane += lanes) {
      std::uint8_t few[8];
      hn::StoreMaskBits(d, mask(i + lane), few);
      bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | few[0] << lane);
    }
  }
}

void compare_words(std::size_t width, const void* a, const void* b, std::size_t n,
                   std::uint8_t* bits) {
  if (width == 1) return compare<std::uint8_t, false>(a, b, n, bits);
  if (width == 2) return compare<std::uint16_t, false>(a, b, n, bits);
  compare<std::uint32_t, true>(a, b, n, bits);
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(compare_words);

namespace optimizer {
namespace {

constexpr std::size_t kBlock = 2048;  ///< elements compared at a time, a multiple of 64

std::size_t width_of(Dtype dtype) { return static_cast<std::size_t>(format_of(dtype).width / 8); }

/// Rounds n <= kBlock elements of 32 or 64 bits.
template <class Copy>
void round_block(const TensorView& tensor, Format to, const std::byte* from, std::size_t n,
                 std::byte* out) {
  const Modes modes = {.nan = NanPolicy::canonical};
  alignas(64) Copy copies[kBlock];
  if (tensor.dtype == Dtype::f32) {
    alignas(64) float values[kBlock];
    std::memcpy(values, from, n * sizeof(float));
    convert(to, std::span<const float>(values, n), std::span(copies, n),
            {.modes = modes, .threads = 1});
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      double value = 0;
      std::memcpy(&value, from + i * sizeof value, sizeof value);
      copies[i] = static_cast<Copy>(from_double(to, value, modes).bits);
    }
  }
  std::memcpy(out, copies, n * sizeof(Copy));
}

}  // namespace

Dtype copy_dtype(Dtype tensor, Dtype copies) { return width_of(tensor) <= 2 ? tensor : copies; }

void copies_of(const TensorView& tensor, Dtype copies, std::size_t first, std::size_t n,
               std::byte* to) {
  const Dtype dtype = copy_dtype(tensor.dtype, copies);
  const std::size_t from_width = width_of(tensor.dtype), width = width_of(dtype);
  const std::byte* const from = tensor.data + first * from_width;
  if (dtype == tensor.dtype) {
    std::memcpy(to, from, n * width);
    return;
  }
  const auto round = width == 1 ? round_block<std::uint8_t> : round_block<std::uint16_t>;
  for (std::size_t i = 0; i < n; i += kBlock) {
    round(tensor, format_of(dtype), from + i * from_width, std::min(kBlock, n - i), to + i * width);
  }
}

std::uint64_t count_bits(std::span<const std::uint8_t> bits) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < bits.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bits.data() + i, std::min(sizeof word, bits.size() - i));
    count += static_cast<std::uint64_t>(std::popcount(word));
  }
  return count;
}

std::uint64_t changed(const TensorView& a, const TensorView& b, Dtype copies, std::size_t first,
                      std::size_t n, std::span<std::uint8_t> bits) {
  // The kernel rounds binary32 to bfloat16 itself: it compares the words as they are.
  const bool rounds = a.dtype == Dtype::f32 && copies == Dtype::bf16;
  const std::size_t width = rounds ? 4 : width_of(copy_dtype(a.dtype, copies));
  alignas(64) std::byte x[4 * kBlock], y[4 * kBlock];
  std::uint8_t found[kBlock / 8 + 8];  // StoreMaskBits may write 8 bytes
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < n; i += kBlock) {
    const std::size_t size = std::min(kBlock, n - i), padded = (size + 63) / 64 * 64;
    const auto take = [&](const TensorView& tensor, std::byte* to) -> const std::byte* {
      const std::byte* const from = tensor.data + (first + i) * width;
      if (rounds && size == padded) return from;
      if (rounds) {
        std::memcpy(to, from, size * width);
      } else {
        copies_of(tensor, copies, first + i, size, to);
      }
      std::memset(to + size * width, 0, (padded - size) * width);
      return to;
    };
    HWY_DYNAMIC_DISPATCH(compare_words)(width, take(a, x), take(b, y), padded, found);
    count += count_bits({found, padded / 8});
    std::memcpy(bits.data() + i / 8, found, (size + 7) / 8);
  }
  return count;
}

}  // namespace optimizer
}  // namespace halfscope
#endif
