// SPDX-License-Identifier: Apache-2.0
// Shared parts of the two files of the fast pass over pairs. Internal to table/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"

namespace halfscope {

inline constexpr std::size_t kPairBlock = 1024;  ///< pairs; both arrays fit in the L1 cache
inline constexpr std::size_t kPairStep = 64;     ///< a multiple of every vector's number of lanes

/// Range of pairs that the vector code supports: |u| is 0 or in [2^kFirstUpdate, 2^kEndBinade]; |w|
/// at most 2^kEndBinade; |w16| is 0 or at least 2^kFirstWeight. Then no sum overflows, and no
/// number is subnormal in binary32, not even errors: they are multiples of u's or w16's last place.
inline constexpr int kEndBinade = 14, kFirstUpdate = -103, kFirstWeight = -46;

/// A row of bins for each exponent field of w16, with four bins for each exponent field of u; row
/// and column 0 are for zeros. A row's length, 2^9 + 2^6, spreads the rows over the cache's sets.
inline constexpr std::uint32_t kUpdateRow = 576, kErrorBins = 128;
inline constexpr int kFieldBias = 127, kErrorBias = 96;
inline constexpr std::uint32_t kEndField = kEndBinade + kFieldBias + 1;
static_assert(4 * kEndField <= kUpdateRow);
inline constexpr std::size_t kCellTables = 2, kErrorTables = 8;  ///< used in turn

/// Sums over the pairs that the vector code counted.
struct PairSums {
  std::uint64_t taken = 0;
  std::uint64_t live = 0;  ///< pairs with nonzero u
  std::uint64_t underflow = 0, lost = 0, exact = 0;
  std::uint64_t fused_lost = 0, fused_exact = 0;
  std::uint64_t rule = 0;
};

/// A thread's counters; all counts are zero between uses.
struct PairScratch {
  PairSums sums;
  std::uint32_t rare[kPairBlock + 64] = {};  ///< positions of pairs for the scalar code
  std::size_t rare_count = 0;
  // Bin: row * kUpdateRow + 4 * column + 2 * (fraction of u < fraction of w16) + lost.
  std::array<std::array<std::uint32_t, std::size_t{kUpdateRow} * kEndField>, kCellTables> cells{};
  std::array<std::array<std::uint32_t, kErrorBins>, kErrorTables> errors{};
  bool has_bins = false;
};

/// Counts n <= kPairBlock pairs of binary32 (a multiple of kPairStep), with the updates multiplied
/// by `factor`, a power of two; stores the positions of unsupported pairs in `rare`. f: binary16 or
/// bfloat16. `distributions`: also count cells and errors. ahead: 8 n bytes to prefetch, or null
/// for none. The processor must round to nearest and keep subnormals.
void count_pair_block(Format f, const std::byte* weights, const std::byte* updates, float factor,
                      std::size_t n, bool distributions, const std::byte* ahead,
                      PairScratch& scratch);

}  // namespace halfscope
