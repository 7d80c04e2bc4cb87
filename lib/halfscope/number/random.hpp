// SPDX-License-Identifier: Apache-2.0
// Random numbers from a counter, for repeatable stochastic rounding: word n depends only on the
// seed and n, so it is the same on one thread, many threads and a GPU.
#pragma once

#include <cstdint>

#include "halfscope/number/format.hpp"

namespace halfscope {

/// Four words: the counter and the output of Philox.
struct PhiloxBlock {
  std::uint32_t words[4];

  friend constexpr bool operator==(const PhiloxBlock&, const PhiloxBlock&) = default;
};

/// Multipliers and key increments of Philox4x32.
inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53, kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr std::uint32_t kPhiloxWeyl0 = 0x9E3779B9, kPhiloxWeyl1 = 0xBB67AE85;
inline constexpr int kPhiloxRounds = 10;

/// Philox4x32-10 of J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw: Parallel random numbers: as
/// easy as 1, 2, 3. SC 2011.
HALFSCOPE_HD constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::uint32_t key0,
                                              std::uint32_t key1) {
  PhiloxBlock x = counter;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxMultiplier0} * x.words[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxMultiplier1} * x.words[2];
    x = {{static_cast<std::uint32_t>(product1 >> 32) ^ x.words[1] ^ key0,
          static_cast<std::uint32_t>(product1),
          static_cast<std::uint32_t>(product0 >> 32) ^ x.words[3] ^ key1,
          static_cast<std::uint32_t>(product0)}};
    key0 += kPhiloxWeyl0;
    key1 += kPhiloxWeyl1;
  }
  return x;
}

/// Returns word `index` of the sequence of `seed`: word index % 4 of the block with counter index /
/// 4. The key is the seed, low word first.
HALFSCOPE_HD constexpr std::uint32_t random_word(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t block = index / 4;
  const PhiloxBlock counter = {
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0}};
  const PhiloxBlock random =
      philox4x32(counter, static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  return random.words[index % 4];
}

}  // namespace halfscope
