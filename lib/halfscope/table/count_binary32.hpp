// SPDX-License-Identifier: Apache-2.0
// What the two halves of the binary32 pass share. Internal to table/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace halfscope {

inline constexpr int kBinBits = 4;  ///< fraction bits in a coarse index
inline constexpr std::size_t kBins = std::size_t{1} << kBinBits;
inline constexpr std::size_t kBlock = 2048;  ///< elements; a block and its gather stay in L1
inline constexpr std::size_t kMaxRare = 3;
inline constexpr std::size_t kMaxSegments = 16;

/// 23-bit fractions in [first, first + length) are counted one by one.
struct RareInterval {
  std::uint32_t first = 0;
  std::uint32_t length = 0;
};

/// How coarse bins and single fractions map to the segments of a table with some cuts.
struct Plan {
  std::array<RareInterval, kMaxRare> rare{};
  std::array<std::size_t, kBins> segment{};        ///< of a bin's elements that are not rare
  std::array<std::uint32_t, kMaxSegments> cuts{};  ///< first fraction at or above each; rest: none
};

/// Per thread; the counts are left all zero between uses.
struct Scratch {
  std::array<std::uint32_t, 1 << (9 + kBinBits)> coarse{};  ///< by sign, exponent, top of fraction
  std::array<std::array<std::uint32_t, kMaxSegments>, 512> single{};  ///< by sign and exponent
  /// 64: room for one vector more. On a page of its own: the gather stores a whole vector each
  /// time, and stores that straddle two pages halved the speed of the pass.
  alignas(4096) std::array<std::uint32_t, kBlock + 64> rare{};
  std::size_t rare_count = 0;
  // Over the finite elements seen since reset():
  std::uint32_t largest = 0;                      ///< magnitude bits
  std::uint32_t smallest_less_one = 0xFFFFFFFFu;  ///< nonzero magnitude bits, less 1
  std::uint32_t fractions = 0;                    ///< fractions of normal elements, or-ed

  void reset() {
    largest = fractions = 0;
    smallest_less_one = 0xFFFFFFFFu;
  }
};

/// Counts n <= kBlock elements, a multiple of kStep, into scratch.coarse, and gathers in
/// scratch.rare what the plan calls rare and what is not normal (zeros excepted).
void scan_block(const std::byte* data, std::size_t n, const Plan& plan, Scratch& scratch);
inline constexpr std::size_t kStep = 64;  ///< a multiple of every vector's lanes

/// The smallest "lowest set bit" among the normal ones of n elements (a multiple of kStep), as
/// binary32 bits; infinity's when there is none.
std::uint32_t smallest_low_bit(const std::byte* data, std::size_t n);

}  // namespace halfscope
