// SPDX-License-Identifier: Apache-2.0
// What the two halves of the fast pass over pairs share. Internal to table/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"

namespace halfscope {

inline constexpr std::size_t kPairBlock = 1024;  ///< pairs; both arrays of a block stay in L1
inline constexpr std::size_t kPairStep = 64;     ///< a multiple of every vector's lanes

/// Pairs that vectors take: |u| in [2^kFirstUpdate, 2^kEnd] or 0; |w| at most 2^kEnd; w16 0 or at
/// least 2^kFirstWeight. There no sum overflows, and no number is subnormal in binary32, errors
/// included: they are multiples of u's last place or w16's.
inline constexpr int kEndBinade = 14, kFirstUpdate = -103, kFirstWeight = -46;

/// A row of bins for each exponent field of w16, in it four for each exponent field of u; row and
/// column 0 are of zeros. The length of a row, 2^9 + 2^6, spreads the rows over the cache's sets.
inline constexpr std::uint32_t kUpdateRow = 576, kErrorBins = 128;
inline constexpr int kFieldBias = 127, kErrorBias = 96;
inline constexpr std::uint32_t kEndField = kEndBinade + kFieldBias + 1;
static_assert(4 * kEndField <= kUpdateRow);
inline constexpr std::size_t kCellTables = 2, kErrorTables = 8;  ///< taken in turn

/// Sums over the pairs that vectors took.
struct PairSums {
  std::uint64_t taken = 0;
  std::uint64_t live = 0;  ///< of these, u is not zero
  std::uint64_t underflow = 0, lost = 0, exact = 0;
  std::uint64_t fused_lost = 0, fused_exact = 0;
  std::uint64_t rule = 0;
};

/// Per thread; the counts are left all zero between uses.
struct PairScratch {
  PairSums sums;
  std::uint32_t rare[kPairBlock + 64] = {};  ///< positions in the block of the pairs left over
  std::size_t rare_count = 0;
  // Bin: row * kUpdateRow + 4 * column + 2 * (fraction of u < fraction of w16) + lost.
  std::array<std::array<std::uint32_t, std::size_t{kUpdateRow} * kEndField>, kCellTables> cells{};
  std::array<std::array<std::uint32_t, kErrorBins>, kErrorTables> errors{};
  bool has_bins = false;
};

/// Counts n <= kPairBlock pairs of binary32 (a multiple of kPairStep), the updates times a power of
/// two, but for those it leaves in `rare`. f: binary16 or bfloat16. Where `distributions`, the
/// cells and errors too. ahead: 8 n bytes to be fetched meanwhile, or null. The processor must
/// round to nearest and keep subnormals.
void count_pair_block(Format f, const std::byte* weights, const std::byte* updates, float factor,
                      std::size_t n, bool distributions, const std::byte* ahead,
                      PairScratch& scratch);

}  // namespace halfscope
