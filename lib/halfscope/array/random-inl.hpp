// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 on vectors, equal to number/random.hpp. Included once for each target of Highway.
#if defined(HALFSCOPE_ARRAY_RANDOM_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFSCOPE_ARRAY_RANDOM_INL
#undef HALFSCOPE_ARRAY_RANDOM_INL
#else
#define HALFSCOPE_ARRAY_RANDOM_INL
#endif

#include <hwy/highway.h>

#include "halfscope/array/block-inl.hpp"
#include "halfscope/number/random.hpp"

#if HALFSCOPE_VECTORS
HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

using Wide = hn::ScalableTag<std::uint64_t>;
using WideVector = hn::Vec<Wide>;

/// Multiplies the low words of all lanes to 64-bit products.
HWY_INLINE WideVector multiply_low(WideVector a, std::uint32_t b) {
  const hn::Repartition<std::uint32_t, Wide> words;
  return hn::MulEven(hn::BitCast(words, a), hn::Set(words, b));
}

/// A counter's four words, each in the low half of a lane; the high halves are undefined.
struct PhiloxLanes {
  WideVector word[4];
};

HWY_INLINE PhiloxLanes philox_round(const PhiloxLanes& x, WideVector key0, WideVector key1) {
  const WideVector product0 = multiply_low(x.word[0], kPhiloxMultiplier0);
  const WideVector product1 = multiply_low(x.word[2], kPhiloxMultiplier1);
  const WideVector high0 = hn::ShiftRight<32>(product0);
  const WideVector high1 = hn::ShiftRight<32>(product1);
  // The keys first: they do not depend on the products.
  return {{hn::Xor(high1, hn::Xor(x.word[1], key0)), product1,
           hn::Xor(high0, hn::Xor(x.word[3], key1)), product0}};
}

/// Stores the blocks of all lanes, in the order of their counters.
HWY_INLINE void store_blocks(const PhiloxLanes& x, std::uint32_t* to) {
  const Wide d;
  const WideVector low = hn::Set(d, 0xFFFFFFFFu);
  const WideVector first = hn::Or(hn::And(x.word[0], low), hn::ShiftLeft<32>(x.word[1]));
  const WideVector second = hn::Or(hn::And(x.word[2], low), hn::ShiftLeft<32>(x.word[3]));
  hn::StoreInterleaved2(first, second, d, reinterpret_cast<std::uint64_t*>(to));
}

constexpr std::size_t kRandomSlack = 64;
static_assert(8 * hn::MaxLanes(Wide()) <= kRandomSlack);

/// Writes whole blocks from `block` on, enough to cover `count` words; `to` must have kRandomSlack
/// more words. Indices have 64 bits: after 2^62 blocks the first follows again.

HWY_INLINE void fill_random(std::uint64_t seed, std::uint64_t block, std::size_t count,
                            std::uint32_t* to) {
  const Wide d;
  const std::size_t lanes = hn::Lanes(d);
  WideVector keys0[kPhiloxRounds], keys1[kPhiloxRounds];
  auto key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    keys0[round] = hn::Set(d, key0);
    keys1[round] = hn::Set(d, key1);
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  const auto start = [&](std::uint64_t first) HWY_ATTR {
    const WideVector counter = hn::And(hn::Add(hn::Set(d, first), hn::Iota(d, std::uint64_t{0})),
                                       hn::Set(d, ~std::uint64_t{0} >> 2));
    return PhiloxLanes{{counter, hn::ShiftRight<32>(counter), hn::Zero(d), hn::Zero(d)}};
  };
  // Each round depends on the one before: two interleaved sequences keep the processor busy.
  for (std::size_t done = 0; done < count; done += 8 * lanes, block += 2 * lanes) {
    PhiloxLanes x = start(block), y = start(block + lanes);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      x = philox_round(x, keys0[round], keys1[round]);
      y = philox_round(y, keys0[round], keys1[round]);
    }
    store_blocks(x, to + done);
    store_blocks(y, to + done + 4 * lanes);
  }
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
